"""Chapterverse: ask a book, and get answers whose every sentence was checked against the passage it cites.

Importing it is fast, because the index's child process and the command line import it. `Book` and `SyncBook`, the
interfaces for programs, are imported on first use.
"""

from typing import TYPE_CHECKING

__all__ = ["Book", "SyncBook", "__version__"]

__version__ = "0.1.0"

if TYPE_CHECKING:
    from chapterverse.library import Book, SyncBook
else:

    def __getattr__(name: str) -> type:
        if name not in ("Book", "SyncBook"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from chapterverse import library

        return library.Book if name == "Book" else library.SyncBook
