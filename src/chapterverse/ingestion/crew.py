"""Worker processes of one ingest: they read documents and embed passages, and one process writes what comes of it.

Owns the processes and their end. The run, its ledger, its journal and the index stay with the process that opened the
crew, so that there is one order of events however many hands there are.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Final

import numpy as np

from chapterverse.embeddings import Embedder, Vectors
from chapterverse.embeddings.relay import Relay

SLICE: Final = 8  # passages handed to a worker at once: half a second of work, so that all are busy to the end


@contextmanager
def open_crew(workers: int) -> Iterator[Executor | None]:
    """So many worker processes; None for one, because threads of this process do as well then."""
    if workers == 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
    crew = ProcessPoolExecutor(workers, context, initializer=_begin)
    try:
        yield crew
    finally:
        crew.shutdown(wait=True, cancel_futures=True)


def shared_out(embedder: Embedder, crew: Executor | None) -> Embedder:
    """The embedder as a run uses it: a crew takes the local one's work, a remote one's is not ours to share."""
    from chapterverse.embeddings.local import LocalEmbedder

    return CrewEmbedder(embedder, crew) if crew and isinstance(embedder, LocalEmbedder) else embedder


class CrewEmbedder(Relay):
    """An embedder whose passages are embedded by a crew; whoever opened the crew ends it."""

    def __init__(self, embedder: Embedder, crew: Executor) -> None:
        super().__init__(embedder)
        self._crew = crew

    @property
    def engine(self) -> str:
        """For people."""
        return f"{self._embedder.engine}, in worker processes"

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in their order."""
        loop = asyncio.get_running_loop()
        slices = [list(texts[start : start + SLICE]) for start in range(0, len(texts), SLICE)]
        made = await asyncio.gather(*(loop.run_in_executor(self._crew, _embed, part) for part in slices))
        return np.concatenate(made) if made else np.empty((0, self.fingerprint.dimension), np.float32)


def _begin() -> None:
    """Leave Ctrl-C to the process that leads, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leader = multiprocessing.parent_process()
    assert leader is not None

    def follow() -> None:
        wait([leader.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


_own: Embedder | None = None  # of this worker, loaded by its first slice


def _embed(texts: list[str]) -> Vectors:
    global _own  # noqa: PLW0603 - a worker process serves one crew
    if _own is None:
        from chapterverse.embeddings.local import LocalEmbedder

        _own = LocalEmbedder(threads=1)
    return asyncio.run(_own.embed_passages(texts))
