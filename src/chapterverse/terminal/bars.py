"""A bar of progress that is there only on a terminal.

An error or Ctrl-C leaves a clean line.
"""

from types import TracebackType
from typing import Self

from rich.progress import Progress as Bar


class WithBar:
    """Shows its bar, if it has one, while it is entered."""

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
