"""The HTTP interface: routes, errors, and nothing that decides what an answer says."""
