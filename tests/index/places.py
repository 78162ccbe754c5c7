"""Directories for tests of the index."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chapterverse.index import generations
from chapterverse.index.edge import EdgeIndex

_MEMORY = Path("/dev/shm")  # an index syncs hundreds of files, which is slow on a disk


def memory_folder(free: int = 2 << 30) -> Path | None:
    """Returns a folder in memory, if there are this many free bytes."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > free else None


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory, in memory if there is room."""
    with tempfile.TemporaryDirectory(prefix="index-", dir=memory_folder()) as directory:
        yield Path(directory)


def copy_book(source: Path, target: Path) -> None:
    """Copies a home or an index without locks and reader files. Sparse files stay sparse: the index of the example book
    has 164 MB of files with 2 MB of data, and a copy that is not sparse would be read completely."""

    def copy(from_: str, to: str) -> None:
        generations._copy_sparse(from_, to)
        shutil.copystat(from_, to)

    copy_function: Callable[[str, str], object] = copy
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("readers", "*.lock"), copy_function=copy_function)


def patient_index(directory: Path) -> EdgeIndex:
    """An index with long timeouts for busy machines."""
    return EdgeIndex(directory, timeout=30, loading=60)
