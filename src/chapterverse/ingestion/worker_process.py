"""The worker process of an ingest: `python -m chapterverse.ingestion.worker_process read|embed`.

It reads requests from standard input and writes one reply each to standard output, as length-prefixed pickles. It ends
when standard input does, so it never outlives the process that started it.

A `read` worker parses files of strangers. It runs under limits: memory for the whole process, CPU time for each
document, and a size for each reply. A parser that breaks a limit or crashes ends this process, not the ingest.
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

from chapterverse.ingestion.document import Document, NothingToRead, Unreadable
from chapterverse.ingestion.worker_limits import HEADER, READY, ReadLimits

if TYPE_CHECKING:
    from chapterverse.embeddings import Embedder, Vectors

Outcome = Literal["pages", "unreadable", "nothing"]
Reply = tuple[Outcome, Any, bool]  # what came of it; the pages or the reason; whether the worker has to be replaced
MOST_TRACEBACK: Final = 4000  # characters


def main() -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    requests, replies = _own_pipes()
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
        from chapterverse.ingestion.reading import read_pages

        self._read = read_pages
        self._limits = limits
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_AS, limits.memory)

    def handle(self, request: tuple[Document, int]) -> bytes:
        """The pickled reply to a request."""
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
        except Exception as error:  # noqa: BLE001 - a fault of a reader must not end the run
            print(traceback.format_exc()[-MOST_TRACEBACK:], file=sys.stderr)  # noqa: T201 - shown with -v
            return "unreadable", f"the reader failed: {type(error).__name__}: {str(error)[:200]}", True

    def _is_large(self) -> bool:
        """Whether so much memory is taken that a large document may not fit any more."""
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
        """The pickled vectors. The model is loaded with the first request."""
        if self._embedder is None:
            from chapterverse.embeddings.local import LocalEmbedder

            self._embedder = LocalEmbedder(threads=1)
        vectors: Vectors = asyncio.run(self._embedder.embed_passages(texts))
        return pickle.dumps((vectors.shape, vectors.tobytes()), pickle.HIGHEST_PROTOCOL)


def _limit(kind: int, value: int) -> None:
    """Lower a soft limit. Where the system refuses, the parent's clock is still there."""
    _, hard = resource.getrlimit(kind)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _cpu_seconds() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return int(used.ru_utime + used.ru_stime)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes of the parent. Whatever a parser prints goes to standard error."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return requests, replies


def _write(replies: BinaryIO, packed: bytes) -> None:
    replies.write(HEADER.pack(len(packed)))
    replies.write(packed)
    replies.flush()


if __name__ == "__main__":
    main()
