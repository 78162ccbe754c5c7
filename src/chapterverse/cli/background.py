"""Runs the services on a separate thread, so that the main thread can wait at a prompt while they open.

Ctrl-C, which Python raises in the main thread, cancels the work on that thread.
"""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

if TYPE_CHECKING:
    from chapterverse.services import Services

T = TypeVar("T")
Work = Callable[["Services"], Coroutine[Any, Any, T]]


class Background:
    """A context manager that opens the services without waiting for them, and closes them at the end."""

    def __init__(self, opening: "Callable[[], contextlib.AbstractAsyncContextManager[Services]]") -> None:
        self._opening = opening
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="services")
        self._loop: Future[asyncio.AbstractEventLoop] = Future()

    def __enter__(self) -> Self:
        self._life = self._thread.submit(asyncio.run, self._live())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = self._loop.result()
        loop.call_soon_threadsafe(self._main.cancel)
        while not self._life.done():
            # If Ctrl-C is pressed again, closing is cancelled and the thread ends.
            with contextlib.suppress(KeyboardInterrupt):
                concurrent.futures.wait([self._life])
                break
            loop.call_soon_threadsafe(self._main.cancel)
        with contextlib.suppress(asyncio.CancelledError, concurrent.futures.CancelledError):
            self._life.result()
        self._thread.shutdown()

    @property
    def ready(self) -> bool:
        """Whether the services are open, or failed to open."""
        return self._loop.done() and self._opened.done()

    def run(self, work: Work[T]) -> T:
        """Do the work and return its result. Each Ctrl-C cancels it, until `CancelledError` is raised."""
        result: Future[T] = Future()
        task: asyncio.Task[T] | None = None

        def begin() -> None:
            nonlocal task
            task = loop.create_task(self._with_services(work))
            task.add_done_callback(lambda done: _copy_result(done, result))

        def cancel() -> None:
            if task is not None:
                task.cancel()

        loop = self._loop.result()
        loop.call_soon_threadsafe(begin)
        while True:
            try:
                return result.result()
            except KeyboardInterrupt:
                loop.call_soon_threadsafe(cancel)

    async def _live(self) -> None:
        """Keep the services open until this task is cancelled. An error in opening them is raised where they are
        used."""
        async with contextlib.AsyncExitStack() as closing:
            self._main = cast("asyncio.Task[None]", asyncio.current_task())
            self._opened = asyncio.create_task(closing.enter_async_context(self._opening()))
            self._loop.set_result(asyncio.get_running_loop())
            try:
                await asyncio.Event().wait()
            finally:
                self._opened.cancel()
                await asyncio.gather(self._opened, return_exceptions=True)

    async def _with_services(self, work: Work[T]) -> T:
        return await work(await asyncio.shield(self._opened))


def _copy_result(task: asyncio.Task[T], result: Future[T]) -> None:
    if task.cancelled():
        result.cancel()
    elif (failure := task.exception()) is not None:
        result.set_exception(failure)
    else:
        result.set_result(task.result())
