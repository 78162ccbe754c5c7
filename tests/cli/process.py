"""Runs the command line as a real process, with a pipe or a terminal."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.forking import run_forked

SECONDS = 100  # time limit of one command
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
# Makes the terminal the controlling one of the session, so that Ctrl-C reaches the whole process group.
_ON_A_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from chapterverse.cli import main
main(prog_name="chapterverse")
"""


def chapterverse(home: Path, *arguments: str, fed: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command to its end, in its own process."""
    whole = os.environ | {"CHAPTERVERSE_HOME": str(home)} | environment
    if not any(name.startswith("PYTHON") for name in environment):
        return run_forked(arguments, whole, fed, SECONDS)
    command = [sys.executable, "-m", "chapterverse.cli", *arguments]
    return subprocess.run(command, env=whole, input=fed, capture_output=True, text=True, timeout=SECONDS, check=False)


def assert_refused(home: Path, arguments: list[str], code: int, expected: str) -> None:
    """Checks that the command fails with this exit code, prints this to standard error and nothing to standard
    output."""
    shown = chapterverse(home, *arguments)
    assert shown.returncode == code, shown.stderr
    assert expected in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""


class Terminal:
    """A process on a terminal of 100 columns, as a context manager. `screen` is everything that it has shown."""

    def __init__(self, home: Path, *arguments: str, **environment: str) -> None:
        self.screen = ""
        self._seen = 0
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_A_TERMINAL, *arguments],
            env=os.environ | {"CHAPTERVERSE_HOME": str(home), "TERM": "xterm"} | environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def until(self, text: str, seconds: float = 60) -> str:
        """Waits for this text; returns what was shown since the last call, including the text."""
        deadline = time.monotonic() + seconds
        while (found := self.screen.find(text, self._seen)) < 0:
            if not select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} was not shown in time; instead: {self.screen[self._seen :]!r}")
            self._read()
        shown = self.screen[self._seen : found + len(text)]
        self._seen = found + len(text)
        return shown

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ask(self, line: str) -> str:
        """Enters a line at the prompt; returns what is shown until the next prompt."""
        self.type(f"{line}\n")
        self.until(line)
        return self.until("\n> ")

    def interrupt(self) -> str:
        """Presses Ctrl-C at the prompt; returns what is shown until the next one.

        It is pressed again after a while, because readline does not see it between showing its prompt and reading."""
        for _ in range(12):
            self.type("\x03")
            with contextlib.suppress(AssertionError):
                return self.until("\n> ", 5)
        raise AssertionError("Ctrl-C had no effect")

    def ended(self) -> int:
        """Waits for the end of the process; returns the exit code."""
        try:
            while True:
                self._read()
        except OSError:  # raised when the other end of the terminal is closed
            return self.process.wait(60)

    def _read(self) -> None:
        self.screen += _ESCAPES.sub("", os.read(self._ours, 65536).decode("utf-8", "replace"))
