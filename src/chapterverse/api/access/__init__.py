"""API keys, rate limits, allowed hosts, and the limit on concurrent requests."""
