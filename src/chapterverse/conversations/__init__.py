"""Conversations in Postgres: what a turn is, how turns are stored, archived and purged, and the embedded server."""
