"""One file for each seed: its examples and fields, replayed against the real server."""
