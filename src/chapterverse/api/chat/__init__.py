"""Questions over HTTP: `/chat`, `/chat/run` and `/chat/stream`."""
