"""Where tests of the index put their directories, and how they open them."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chapterverse.index.edge import EdgeIndex

_MEMORY = Path("/dev/shm")  # an index syncs hundreds of files: on a disk that is most of a test's time


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory, in memory where there is room."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2 << 30
    with tempfile.TemporaryDirectory(prefix="index-", dir=_MEMORY if roomy else None) as directory:
        yield Path(directory)


def patient_index(directory: Path) -> EdgeIndex:
    """An index that waits for its process on a machine that does much else: nothing here tests how soon it answers."""
    return EdgeIndex(directory, timeout=30, loading=60)
