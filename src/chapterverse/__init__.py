"""Chapterverse: ask a book, and get answers whose every sentence was checked against the passage it cites.

Imports nothing on its own: the index's child process and the command line start from here. `Book`, the door for
programs, is imported when it is asked for.
"""

from typing import TYPE_CHECKING

__all__ = ["Book", "__version__"]

__version__ = "0.1.0"

if TYPE_CHECKING:
    from chapterverse.library import Book
else:

    def __getattr__(name: str) -> type:
        if name != "Book":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from chapterverse.library import Book

        return Book
