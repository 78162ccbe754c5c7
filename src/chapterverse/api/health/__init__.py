"""Whether the server is alive and ready, and how its dependencies do."""
