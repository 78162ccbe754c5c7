"""Where tests of the index put their directories."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")  # an index syncs hundreds of files: on a disk that is most of a test's time


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory, in memory where there is room."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2 << 30
    with tempfile.TemporaryDirectory(prefix="index-", dir=_MEMORY if roomy else None) as directory:
        yield Path(directory)
