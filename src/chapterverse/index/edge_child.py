"""The parent's side of an index process: starts it, sends requests, notices when it dies or hangs, and ends it."""

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from chapterverse import errors
from chapterverse.book import Manifest
from chapterverse.environment import child_environment
from chapterverse.errors import ChapterverseError, IndexTimeout, IndexUnavailable
from chapterverse.index import frames
from chapterverse.index.points import manifest_from_payload

START_TIMEOUT = 60.0  # seconds to copy and load a generation; 100,000 chunks take about one
_EXIT_TIMEOUT = 5.0  # seconds a child may take to remove its copy


class EdgeChild:
    """A running index process and its pending requests. `close` waits for the end of all `async with` blocks on it."""

    def __init__(self, process: asyncio.subprocess.Process, ready: Mapping[str, Any]) -> None:
        self.generation: str = ready["generation"]
        self.current: str | None = ready["current"]  # at its start
        self.damage: str | None = ready["damage"]  # why an older generation is served instead of the current one
        self.manifest: Manifest = manifest_from_payload(ready["manifest"])
        self.modules: set[tuple[str, str]] | None = None  # pairs of edition and module, after the first request
        self._process = process
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._ids = itertools.count()
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()
        self._heard = time.monotonic()
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, directory: Path) -> Self:
        """Start a process on the current generation and wait until it is ready."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "chapterverse.index.edge_process", str(directory)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=child_environment(),
            )
        except OSError as error:  # no memory, or too many processes or open files
            message = f"The process of the embedded vector engine cannot be started: {error.strerror}"
            raise IndexUnavailable(message) from error
        try:
            ready = await _wait_until_ready(process)
        except BaseException:
            await _end(process, 0.0)
            raise
        return cls(process, ready)

    @property
    def alive(self) -> bool:
        """Whether it can still answer."""
        return not self._listener.done()

    async def __aenter__(self) -> Self:
        self._users += 1
        self._unused.clear()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users:
            self._unused.set()

    async def call(self, operation: str, *args: Any, timeout: float) -> Any:  # noqa: ASYNC109 - the wait has two ends
        """The result of an operation. A process that sent nothing for `timeout` seconds is killed."""
        if not self.alive:
            raise IndexUnavailable(_DIED)
        id_ = next(self._ids)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[id_] = answer
        asked = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                assert self._process.stdin is not None
                self._process.stdin.write(frames.pack({"id": id_, "op": operation, "args": args}))
                await self._process.stdin.drain()
                return await answer
        except TimeoutError as error:
            if self._heard < asked:
                _kill(self._process)
            raise IndexTimeout(f"The embedded vector engine did not answer in {timeout:g} s") from error
        except (ConnectionError, RuntimeError) as error:  # uvloop raises RuntimeError for a closed pipe
            raise IndexUnavailable(_DIED) from error
        finally:
            self._pending.pop(id_, None)

    async def close(self) -> None:
        """End the process when it is no longer used."""
        await self._unused.wait()
        await _end(self._process, _EXIT_TIMEOUT)
        await self._listener

    async def _listen(self) -> None:
        """Pass each answer to its caller until the process ends."""
        assert self._process.stdout is not None
        try:
            while True:
                message = await frames.receive(self._process.stdout)
                self._heard = time.monotonic()
                answer = self._pending.get(message["id"])
                if answer is None or answer.done():
                    continue  # the caller does not wait any more
                if "error" in message:
                    answer.set_exception(_error(message["error"]))
                else:
                    answer.set_result(message["result"])
        except asyncio.IncompleteReadError:
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(IndexUnavailable(_DIED))


_DIED = "The process of the embedded vector engine died; it starts again with the next search"


async def _wait_until_ready(process: asyncio.subprocess.Process) -> Mapping[str, Any]:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_TIMEOUT):
            ready: Mapping[str, Any] = await frames.receive(process.stdout)
    except TimeoutError as error:
        raise IndexTimeout(f"The embedded vector engine did not start in {START_TIMEOUT:g} s") from error
    except asyncio.IncompleteReadError as error:
        raise IndexUnavailable("The process of the embedded vector engine died while it started") from error
    if "error" in ready:
        raise _error(ready["error"])
    return ready


async def _end(process: asyncio.subprocess.Process, patience: float) -> None:
    """Close the pipe, which tells the process to end, and kill it if it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(patience):
            await process.wait()
    except TimeoutError:
        _kill(process)
        await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        process.kill()


def _error(description: tuple[str, str]) -> ChapterverseError:
    name, message = description
    kind: type[ChapterverseError] = getattr(errors, name)
    return kind(message)
