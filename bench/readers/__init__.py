"""Measures how well the readers understand documents, by comparing them with the books' own generators."""
