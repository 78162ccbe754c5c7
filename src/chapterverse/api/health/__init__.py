"""Health checks: whether the server is alive and ready, and the state of its dependencies."""
