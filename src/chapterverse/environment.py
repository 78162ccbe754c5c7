"""The environment and the pipes of child processes."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

# Variables for files, libraries and language: an allow-list, so that child processes get no keys or passwords.
_NAMES: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SYSTEMROOT"),
        *("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUTF8"),
        *("COVERAGE_PROCESS_START", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    }
)


def child_environment(**extra: str) -> Mapping[str, str]:
    """The environment for a child process: the allowed variables of this one, and `extra`."""
    kept = {name: value for name, value in os.environ.items() if name in _NAMES or name.startswith("LC_")}
    return kept | extra


def own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """In a child process: the pipes from and to the parent. Other output to stdout is redirected to stderr, so that it
    cannot break the protocol."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return requests, replies
