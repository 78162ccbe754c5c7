"""Ingestion: fetches, reads, chunks and embeds pages, and publishes the next generation of the index.

`pipeline.py` has the whole run; each step is a separate module.
"""
