"""The MCP interface: the book as tools and resources for assistants, over stdio and over HTTP.

`server` defines the tools and resources; `stdio` and `http` are the transports. Only this package imports the MCP SDK.
"""
