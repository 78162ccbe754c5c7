"""Chapterverse: ask a book, and get answers whose every sentence was checked against the passage it cites.

Imports nothing on its own: the index's child process and the command line start from here.
"""

__version__ = "0.1.0"
