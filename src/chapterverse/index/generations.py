"""The directory of the embedded index: immutable generations, a pointer to the current one, and readers' copies.

Does not import the engine, so it can be used before the engine is loaded.

    <directory>/CURRENT             name of the current generation, replaced atomically
    <directory>/generations/<id>/   one complete generation of the book, never changed after it was published
    <directory>/generations/<id>.checksums   of all its files; a generation without them was never published
    <directory>/readers/<id>/       a reader's private copy, because loading a shard writes to it
    <directory>/writer.lock         held by the writer

A generation is renamed before it is removed. So a copy is complete if its source still has its name afterwards.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chapterverse.errors import IndexDamaged, IndexMissing, IndexUnavailable, IngestionError, RetrievalUnavailable
from chapterverse.index import checksums
from chapterverse.index.checksums import REBUILD

NO_BOOK = "No book has been ingested yet. Run: chapterverse ingest <folder or URL>"

# Files that loading, querying and closing a shard do not change (tests/index/test_generations.py checks it). They have
# nearly all of its bytes: a reader's copy shares them by hard links.
_SHARED = ("page_*.dat", "chunk_*.mmap")
_COPY_STEP = 1 << 20  # bytes read at once
# Errors of the machine, not of the file that is copied.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def new_name() -> str:
    """A unique name for a generation, which sorts by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def current_name(directory: Path) -> str | None:
    """The name of the current generation; None if there is no book yet. If the pointer is damaged, its readable
    part."""
    try:
        name = (directory / "CURRENT").read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    return re.sub(r"[^\w-]", "_", name)[:100] or "_"


def published(directory: Path) -> list[str]:
    """The names of all published generations, the newest first."""
    folder = directory / "generations"
    return sorted((path.stem for path in folder.glob("*.checksums") if (folder / path.stem).is_dir()), reverse=True)


def damage_of_current(directory: Path) -> str | None:
    """What is wrong with the current generation; None if nothing is, or if there is no book yet."""
    name = current_name(directory)
    if name is None:
        return "the pointer to its current generation is missing" if published(directory) else None
    return checksums.damage(generation_path(directory, name))


def last_good(directory: Path) -> str | None:
    """The newest published generation, except the current one, that is not damaged."""
    current = current_name(directory)
    names = (name for name in published(directory) if name != current)
    return next((name for name in names if checksums.damage(generation_path(directory, name)) is None), None)


def refusal(damage: str) -> str:
    """The error message for a damaged index."""
    return f"The index is damaged: {damage}. {REBUILD}"


def generation_path(directory: Path, name: str) -> Path:
    """The path of a generation."""
    return directory / "generations" / name


def publish(directory: Path, name: str) -> None:
    """Make a complete generation the current one. After a crash either the old or the new one is current."""
    _sync_tree(generation_path(directory, name))
    _sync(checksums.write(generation_path(directory, name)))
    _sync(directory / "generations")
    pointer = directory / "CURRENT.new"
    pointer.write_text(name, "ascii")
    _sync(pointer)
    pointer.replace(directory / "CURRENT")
    _sync(directory)


def sweep_generations(directory: Path) -> None:
    """Remove all generations except the current one and, in case that gets damaged, the one published before it. The
    caller must hold the writer's lock."""
    current = current_name(directory)
    names = [current, *[name for name in published(directory) if name != current][:1]]
    kept = {file for name in names if name for file in (name, f"{name}.checksums")}
    for path in (directory / "generations").iterdir():
        if path.name not in kept:
            _remove(path)


@contextlib.contextmanager
def writer_lock(directory: Path) -> Iterator[None]:
    """Hold the writer's lock. Raise `IngestionError` if another process holds it."""
    try:
        (directory / "generations").mkdir(parents=True, exist_ok=True)
        file = (directory / "writer.lock").open("a+", encoding="ascii")
    except OSError as error:
        raise IngestionError(f"the index cannot be written: {error}") from error
    with file:
        if not _try_lock(file.fileno()):
            file.seek(0)
            raise IngestionError(f"another ingest is running (pid {file.read().strip() or 'unknown'})")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@dataclass(frozen=True, slots=True)
class Copy:
    """A reader's copy of a generation."""

    name: str
    path: Path
    current: str | None  # the current generation; differs from `name` if it is damaged
    damage: str | None = None  # why another generation is served


@contextlib.contextmanager
def private_copy(directory: Path) -> Iterator[Copy]:
    """A reader's verified copy of the current generation, or of the one before if it is damaged. It is removed
    afterwards.

    Copies of killed readers are recognised by their locks, which the kernel has released."""
    if current_name(directory) is None and not published(directory):
        raise IndexMissing(NO_BOOK)
    try:
        readers = _readers_folder(directory)
    except OSError as error:
        raise RetrievalUnavailable(f"The index cannot be copied: {error}") from error
    folder = readers / f"{os.getpid()}-{secrets.token_hex(4)}"
    with (readers / ".lock").open("w") as guard:  # no other process may find our directory before it is locked
        fcntl.flock(guard, fcntl.LOCK_EX)
        _sweep_readers(readers)
        folder.mkdir()
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield _copy_current(directory, folder / "shard")
    finally:
        _remove(folder)
        lock.close()


def _readers_folder(directory: Path) -> Path:
    """The folder of readers' copies: in the directory or, if that is read-only, a private temporary folder."""
    readers = directory / "readers"
    try:
        readers.mkdir(exist_ok=True)
        with (readers / ".lock").open("w"):
            return readers
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
    name = hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:16]
    readers = Path(tempfile.gettempdir()) / f"cv-readers-{os.getuid()}-{name}"
    readers.mkdir(mode=0o700, exist_ok=True)
    if readers.is_symlink() or readers.stat().st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "belongs to another user", str(readers))
    return readers


def _sweep_readers(readers: Path) -> None:
    for path in readers.iterdir():
        if path.is_dir():
            with contextlib.suppress(FileNotFoundError, PermissionError):  # its owner is removing it; another user's
                with (path / "lock").open("a") as lock:
                    abandoned = _try_lock(lock.fileno())
                if abandoned:
                    _remove(path)


def _copy_current(directory: Path, target: Path) -> Copy:
    """Copy the current generation, which may change meanwhile; if it is damaged, the one before."""
    while True:
        current = current_name(directory)
        damage = (
            "the pointer to its current generation is missing" if current is None else _copy(directory, current, target)
        )
        if damage is None:
            assert current is not None
            return Copy(current, target, current)
        if current != current_name(directory):
            continue  # a writer has just replaced it
        for name in published(directory):
            if name != current and _copy(directory, name, target) is None:
                return Copy(name, target, current, damage)
        raise IndexDamaged(refusal(damage))


def _copy(directory: Path, name: str, target: Path) -> str | None:
    """Copy a generation and verify the copy. If it is damaged, remove the copy and return what is wrong."""
    source = generation_path(directory, name)
    try:
        copy_shard(source, target, share=True)
        damage = checksums.damage(source, target)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise IndexUnavailable(f"The index cannot be copied: {error.strerror}") from error
        damage = f"it cannot be read: {error}"
    if damage is None and source.exists():
        return None
    shutil.rmtree(target, ignore_errors=True)
    return damage or f"{name} is gone"


def copy_shard(source: Path, target: Path, *, share: bool) -> None:
    """Copy a shard's directory. With `share`, files that readers never change become hard links."""
    failures: list[OSError] = []  # `copytree` keeps only their messages

    def copy(from_: str, to: str) -> None:
        if share and any(Path(from_).match(pattern) for pattern in _SHARED):
            with contextlib.suppress(OSError):  # a filesystem without hard links
                os.link(from_, to)
                return
        try:
            _copy_sparse(from_, to)
        except OSError as error:
            failures.append(error)
            raise

    copy_function: Callable[[str, str], object] = copy
    try:
        shutil.copytree(source, target, copy_function=copy_function)
    except shutil.Error as error:  # one error for each file; the first is enough
        raise next(iter(failures), OSError(error.args[0][0][2])) from error


def _copy_sparse(from_: str, to: str) -> None:
    """Copy a sparse file with its holes: a small index of 127 MB has 6 MB of data."""
    with open(from_, "rb") as source, open(to, "wb") as target:  # noqa: PTH123 - shutil gives strings
        size = os.fstat(source.fileno()).st_size
        target.truncate(size)
        end = 0
        while end < size:
            try:
                start = os.lseek(source.fileno(), end, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # only a hole is left
                    return
                raise
            end = os.lseek(source.fileno(), start, os.SEEK_HOLE)
            for offset in range(start, end, _COPY_STEP):
                os.pwrite(target.fileno(), os.pread(source.fileno(), min(_COPY_STEP, end - offset), offset), offset)


def _remove(path: Path) -> None:
    """Rename a directory before it is removed, so that a partly removed one never looks complete."""
    if path.is_file():
        path.unlink(missing_ok=True)
        return
    renamed = path.with_name(f"{path.name}.removed")
    with contextlib.suppress(FileNotFoundError):
        path.rename(renamed)
    shutil.rmtree(renamed, ignore_errors=True)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_tree(path: Path) -> None:
    for entry in [*path.rglob("*"), path]:
        _sync(entry)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
