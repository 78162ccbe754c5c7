"""How much memory, time and output reading one document may take, and how a worker process is talked to."""

import struct
from dataclasses import dataclass
from typing import Final

from chapterverse.ingestion.document import Document

HEADER: Final = struct.Struct(">Q")  # the length of the pickle that follows
READY: Final = "ready"
MEBIBYTE = 2**20
PACKED = ("epub", "pdf")  # formats whose text is compressed


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of a worker process that reads documents. Whole numbers, so that they can be passed as arguments."""

    memory: int = 1024 * MEBIBYTE  # bytes of address space of the whole process
    seconds: int = 8  # of CPU time for any document
    seconds_per_mebibyte: int = 20  # more for each MiB; ordinary documents take less than 3
    reply: int = 8 * MEBIBYTE  # bytes of pages and chunks that any document may become
    growth: int = 30  # times a document may grow; its text is stored about four times

    def seconds_for(self, document: Document) -> int:
        """CPU seconds for a document. The limit on wall-clock time is three times that, for a busy machine."""
        return self.seconds + self.seconds_per_mebibyte * len(document.data) // MEBIBYTE

    def reply_for(self, document: Document) -> int:
        """Bytes that the reply to a document may have."""
        growth = self.growth * 5 if document.format in PACKED else self.growth
        return min(self.reply + growth * len(document.data), self.memory)

    @property
    def memory_reason(self) -> str:
        """The reason for the ledger."""
        return f"reading it needs more than {self.memory // MEBIBYTE} MiB of memory"
