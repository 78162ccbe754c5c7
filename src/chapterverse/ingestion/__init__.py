"""From a source to the next state of an index: fetch, read, cut, embed, publish.

The story is in `pipeline.py`; each step is a module of its own.
"""
