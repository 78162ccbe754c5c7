"""The parent's side of the worker processes of an ingest: starts, calls and replaces them.

`DocumentReader` reads documents in a disposable process. `EmbeddingWorkers` embeds passages in several.
"""

import asyncio
import contextlib
import dataclasses
import enum
import io
import logging
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import numpy as np

from chapterverse.embeddings import Embedder, EmbedderWrapper, Vectors
from chapterverse.environment import child_environment
from chapterverse.errors import IngestionError
from chapterverse.ingestion.document import Document, NothingToRead, Unreadable
from chapterverse.ingestion.page_reading import Pages
from chapterverse.ingestion.worker_limits import HEADER, READY, ReadLimits

log = logging.getLogger(__name__)

START_SECONDS: Final = 60.0  # usually half a second
WALL_CLOCK: Final = 3  # seconds of wall-clock time for each second of CPU time
SLICE: Final = 8  # passages in one call of an embedding worker; small, so that all workers stay busy


class WorkerEnded(Exception):
    """The process ended, was killed, or sent an invalid reply. The message is the reason."""


class Worker:
    """A worker process. It must not be used concurrently."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *arguments: str) -> Self:
        """Start a process and wait until it is ready."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "chapterverse.ingestion.worker_process", *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if log.isEnabledFor(logging.DEBUG) else subprocess.DEVNULL,
                env=child_environment(OPENBLAS_NUM_THREADS="1"),
            )
        except OSError as error:
            raise IngestionError(f"a worker process cannot be started: {error.strerror}") from error
        worker = cls(process)
        try:
            ready = pickle.loads(await worker._receive(START_SECONDS, 64))  # noqa: S301
        except WorkerEnded as failure:
            raise IngestionError(f"a worker process could not be started: {failure}") from failure
        except BaseException:
            await worker.kill()
            raise
        assert ready == READY
        return worker

    async def ask(self, request: object, *, seconds: float, most: int) -> bytes:
        """Send a request and return the reply. After `WorkerEnded` or a cancellation the process has ended."""
        try:
            assert self._process.stdin is not None
            packed = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
            with contextlib.suppress(ConnectionError):  # the process has ended; `_receive` raises the reason
                self._process.stdin.write(HEADER.pack(len(packed)))
                self._process.stdin.write(packed)
                await self._process.stdin.drain()
            return await self._receive(seconds, most)
        except BaseException:
            await self.kill()
            raise

    async def kill(self) -> None:
        """End the process now."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await asyncio.shield(self._process.wait())

    async def _receive(self, seconds: float, most: int) -> bytes:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                header = await self._process.stdout.readexactly(HEADER.size)
                size = int(HEADER.unpack(header)[0])
                if size > most:
                    raise WorkerEnded(f"it became more than {most // 2**20} MiB")
                return await self._process.stdout.readexactly(size)
        except TimeoutError:
            await self.kill()
            raise WorkerEnded(f"it took longer than {seconds:.0f} s") from None
        except asyncio.IncompleteReadError:
            raise WorkerEnded(_cause(await self._process.wait())) from None


def _cause(status: int) -> str:
    """Why a process ended, from its exit status."""
    if status == -signal.SIGXCPU:
        return "it took too long"
    if status == -signal.SIGKILL:
        return "its process was killed, perhaps because memory ran out"
    if status < 0:
        return f"it crashed the parser ({signal.Signals(-status).name})"
    return f"the worker process ended with status {status}"


class DocumentReader:
    """Reads documents in a worker process, which is replaced after a failure."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._start: asyncio.Task[Worker] | None = None

    def prepare(self) -> None:
        """Start the worker in the background, if there is none."""
        if self._start is None:
            self._start = asyncio.create_task(Worker.start("read", *map(str, dataclasses.astuple(self._limits))))

    async def read(self, document: Document, window: int) -> Pages:
        """The pages of a document. Raises Unreadable or NothingToRead with the reason for the ledger."""
        self.prepare()
        assert self._start is not None
        worker = await self._start
        seconds = WALL_CLOCK * self._limits.seconds_for(document)
        try:
            packed = await worker.ask((document, window), seconds=seconds, most=self._limits.reply_for(document))
            outcome, result, spent = _Reply(io.BytesIO(packed)).load()
        except WorkerEnded as failure:
            self._start = None
            raise Unreadable(f"cannot be read: {failure}") from failure
        if spent:
            await self.close()
        if outcome == "unreadable":
            raise Unreadable(result)
        if outcome == "nothing":
            raise NothingToRead(result)
        pages: Pages = result
        return pages

    async def close(self) -> None:
        """End the worker."""
        if self._start is None:
            return
        start, self._start = self._start, None
        if not start.done():
            start.cancel()
        with contextlib.suppress(asyncio.CancelledError, IngestionError):
            await (await start).kill()


class _Reply(pickle.Unpickler):
    """Unpickles only our own types, because a parser may be compromised."""

    def find_class(self, module: str, name: str) -> Any:
        """Allow only dataclasses, named tuples and enums of this package."""
        ours = module.startswith("chapterverse.") and module in sys.modules
        found = getattr(sys.modules[module], name, None) if ours else None
        if (
            isinstance(found, type)
            and found.__module__ == module
            and (dataclasses.is_dataclass(found) or issubclass(found, tuple | enum.Enum))
        ):
            return found
        raise WorkerEnded(f"its worker process replied with {module}.{name}")


@asynccontextmanager
async def sharing_work(embedder: Embedder, workers: int) -> AsyncIterator[Embedder]:
    """The embedder for a run. With several workers, the local model runs in processes; others are not changed."""
    from chapterverse.embeddings.local import LocalEmbedder

    if workers == 1 or not isinstance(embedder, LocalEmbedder):
        yield embedder
        return
    shared = EmbeddingWorkers(embedder, workers)
    try:
        yield shared
    finally:
        await shared.end()


class EmbeddingWorkers(EmbedderWrapper):
    """An embedder whose passages are embedded by worker processes."""

    def __init__(self, embedder: Embedder, workers: int) -> None:
        super().__init__(embedder)
        self._count = workers
        self._free: asyncio.Queue[Worker] = asyncio.Queue()
        self._workers: list[Worker] = []
        self._lock = asyncio.Lock()

    @property
    def engine(self) -> str:
        """The description of the engine, for messages."""
        return f"{self._embedder.engine}, in worker processes"

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in their order."""
        async with self._lock:
            if not self._workers:
                await self._start_workers()
        slices = [list(texts[start : start + SLICE]) for start in range(0, len(texts), SLICE)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._embed(part)) for part in slices]
        except* WorkerEnded as failures:
            why = f"a worker process ended: {failures.exceptions[0]}. The book was not changed."
            raise IngestionError(
                f"{why} Run it again with fewer --workers; the finished vectors are kept."
            ) from failures
        batches = [task.result() for task in tasks]
        return np.concatenate(batches) if batches else np.empty((0, self.fingerprint.dimension), np.float32)

    async def end(self) -> None:
        """End the processes."""
        await asyncio.gather(*(worker.kill() for worker in self._workers))

    async def _start_workers(self) -> None:
        async def start() -> None:
            worker = await Worker.start("embed")
            self._workers.append(worker)  # at once, so that `end` ends it if another start fails
            self._free.put_nowait(worker)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._count):
                    group.create_task(start())
        except* IngestionError as failures:
            raise failures.exceptions[0] from None

    async def _embed(self, texts: list[str]) -> Vectors:
        worker = await self._free.get()
        packed = await worker.ask(texts, seconds=600.0, most=2**30)
        self._free.put_nowait(worker)
        shape, data = pickle.loads(packed)  # noqa: S301 - this worker reads only passages, no untrusted files
        return np.frombuffer(data, np.float32).reshape(shape)
