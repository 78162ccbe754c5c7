"""Writers: a question and passages go in, statements with the units they rest on come out.

The Agents SDK is imported by `writing.agent` and `writing.providers` alone, when a language model is configured.
"""

from chapterverse.writing.writer import (
    Exchange,
    Finished,
    Reading,
    Search,
    Stopped,
    Task,
    Writer,
    WriterEvent,
)

__all__ = ["Exchange", "Finished", "Reading", "Search", "Stopped", "Task", "Writer", "WriterEvent"]
