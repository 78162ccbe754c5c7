"""A base class for progress bars, which are shown only on a terminal."""

from types import TracebackType
from typing import Self

from rich.progress import Progress as Bar


class WithBar:
    """A context manager that shows its progress bar, if it has one."""

    _bar: Bar | None = None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()
