"""The worker process of an ingest: `python -m chapterverse.ingestion.worker_process read|embed`.

It reads requests from stdin and writes a reply for each to stdout, as length-prefixed pickles. It ends when stdin is
closed, so it never outlives its parent.

A `read` worker parses untrusted files. It limits the memory of the process, the CPU time for each document, and the
size of each reply. A parser that exceeds a limit or crashes ends this process, not the ingest.
"""

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from chapterverse.environment import own_pipes
from chapterverse.ingestion.document import Document, NothingToRead, Unreadable
from chapterverse.ingestion.worker_limits import HEADER, READY, ReadLimits

if TYPE_CHECKING:
    from chapterverse.embeddings import Embedder, Vectors

Outcome = Literal["pages", "unreadable", "nothing"]
Reply = tuple[Outcome, Any, bool]  # outcome; pages or reason; whether the worker must be replaced
MOST_TRACEBACK: Final = 4000  # characters


def main() -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which then ends this process
    requests, replies = own_pipes()
    handle: Callable[[Any], Any]
    if sys.argv[1] == "read":
        limits = ReadLimits(*map(int, sys.argv[2:]))
        handle = LimitedReader(limits).handle
    else:
        handle = Embedding().handle
    try:
        _write(replies, pickle.dumps(READY))
        while header := requests.read(HEADER.size):
            reply = handle(pickle.loads(requests.read(*HEADER.unpack(header))))  # noqa: S301 - from our parent
            _write(replies, reply)
    except BrokenPipeError:
        pass  # the parent is gone
    os._exit(0)


class LimitedReader:
    """Reads documents, one at a time, within limits."""

    def __init__(self, limits: ReadLimits) -> None:
        from chapterverse.ingestion.page_reading import read_pages

        self._read = read_pages
        self._limits = limits
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_AS, limits.memory)

    def handle(self, request: tuple[Document, int]) -> bytes:
        """Read a document; returns the pickled reply."""
        document, window = request
        _limit(resource.RLIMIT_CPU, _cpu_seconds() + self._limits.seconds_for(document))
        reply = self._reply(document, window)
        try:
            packed = pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)
        except MemoryError:
            return pickle.dumps(("unreadable", self._limits.memory_reason, True))
        most = self._limits.reply_for(document)
        if len(packed) > most:
            why = f"its text is far larger than the file: more than {most // 2**20} MiB"
            return pickle.dumps(("unreadable", why, True))
        return packed

    def _reply(self, document: Document, window: int) -> Reply:
        try:
            return "pages", self._read(document, window), self._is_large()
        except Unreadable as failure:
            return "unreadable", str(failure), self._is_large()
        except NothingToRead as reason:
            return "nothing", str(reason), self._is_large()
        except MemoryError:
            return "unreadable", self._limits.memory_reason, True
        except RecursionError:
            return "unreadable", "is nested too deeply", True
        except Exception as error:  # noqa: BLE001 - a bug in a reader must not end the run
            print(traceback.format_exc()[-MOST_TRACEBACK:], file=sys.stderr)  # noqa: T201 - shown with -v
            return "unreadable", f"the reader failed: {type(error).__name__}: {str(error)[:200]}", True

    def _is_large(self) -> bool:
        """Whether the process uses so much memory that a large document may not fit."""
        try:
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        except OSError:
            return False
        return pages * resource.getpagesize() > self._limits.memory // 2


class Embedding:
    """Embeds passages with the local model, on one thread."""

    def __init__(self) -> None:
        self._embedder: Embedder | None = None

    def handle(self, texts: list[str]) -> bytes:
        """Embed texts; returns the pickled vectors. The model is loaded at the first request."""
        if self._embedder is None:
            from chapterverse.embeddings.local import LocalEmbedder

            self._embedder = LocalEmbedder(threads=1)
        vectors: Vectors = asyncio.run(self._embedder.embed_passages(texts))
        return pickle.dumps((vectors.shape, vectors.tobytes()), pickle.HIGHEST_PROTOCOL)


def _limit(kind: int, value: int) -> None:
    """Lower a soft limit. If the system refuses, the parent's timeout still applies."""
    _, hard = resource.getrlimit(kind)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _cpu_seconds() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return int(used.ru_utime + used.ru_stime)


def _write(replies: BinaryIO, packed: bytes) -> None:
    replies.write(HEADER.pack(len(packed)))
    replies.write(packed)
    replies.flush()


if __name__ == "__main__":
    main()
