"""The MCP interface: the book as tools and resources for other people's assistants, over stdio and over HTTP.

`server` says what there is, once; `stdio` and `http` carry it. The only place that imports the MCP SDK.
"""
