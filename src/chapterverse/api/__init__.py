"""The HTTP interface: routes, middleware and errors. What an answer says is decided in `answering`."""
