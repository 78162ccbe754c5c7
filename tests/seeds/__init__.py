"""One file for each seed: its examples and fields, tested against the real server."""
