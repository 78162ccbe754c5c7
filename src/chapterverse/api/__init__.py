"""The HTTP door: routes, errors, and nothing that decides what an answer says."""
