"""The environment variables that child processes get: an allow-list, so that no key or password reaches them."""

import os
from collections.abc import Mapping
from typing import Final

# What a program needs to find its files, its libraries and its language. Nothing here holds a secret.
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
