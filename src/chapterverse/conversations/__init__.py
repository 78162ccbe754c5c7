"""Conversations in Postgres: turns, how they are stored, archived and purged, and the embedded server."""
