"""Limits of memory, time and output for reading one document, and the frame format of worker processes."""

import struct
from dataclasses import dataclass
from typing import Final

from chapterverse.ingestion.document import Document
from chapterverse.ingestion.formats import PACKED

HEADER: Final = struct.Struct(">Q")  # the length of the pickle that follows
READY: Final = "ready"
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of a worker process that reads documents. They are integers, because they are command-line arguments."""

    memory: int = 1024 * MEBIBYTE  # bytes of address space of the whole process
    seconds: int = 8  # CPU time for any document
    seconds_per_mebibyte: int = 20  # additional time for each MiB; ordinary documents take less than 3
    reply: int = 8 * MEBIBYTE  # size of the pages and chunks of any document
    growth: int = 30  # maximum size of the reply relative to the document; a reply has each text about four times

    def seconds_for(self, document: Document) -> int:
        """CPU seconds for a document. The wall-clock limit is three times as long, because machines may be busy."""
        return self.seconds + self.seconds_per_mebibyte * len(document.data) // MEBIBYTE

    def reply_for(self, document: Document) -> int:
        """The maximum size of the reply, in bytes."""
        growth = self.growth * 5 if document.format in PACKED else self.growth
        return min(self.reply + growth * len(document.data), self.memory)

    @property
    def memory_reason(self) -> str:
        """The reason for the ledger if the memory limit is exceeded."""
        return f"reading it needs more than {self.memory // MEBIBYTE} MiB of memory"
