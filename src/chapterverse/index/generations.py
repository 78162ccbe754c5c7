"""The directory of the embedded index: immutable generations, a pointer to the current one, private copies of readers.

Does not import the engine, so it can be used before one is loaded.

    <directory>/CURRENT             name of the current generation, replaced atomically
    <directory>/generations/<id>/   one whole state of the book, never changed once it was current
    <directory>/generations/<id>.checksums   of every file of it; a state without them was never published
    <directory>/readers/<id>/       a reader's private copy, because loading a shard writes to it
    <directory>/writer.lock         held by the one writer

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

from chapterverse.errors import IndexDamaged, IndexMissing, IngestionError, RetrievalUnavailable
from chapterverse.index import checksums
from chapterverse.index.checksums import REBUILD

NO_BOOK = "No book has been ingested yet. Run: chapterverse ingest <folder or URL>"

# Files that loading, querying and closing a shard leave as they are (tests/index/test_generations.py checks it) and
# that hold nearly all of its bytes: a reader's copy shares them by hard links.
_SHARED = ("page_*.dat", "chunk_*.mmap")
_COPY_STEP = 1 << 20  # bytes read at once


def new_name() -> str:
    """A name for a generation: sorts by time, never repeats."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def current_name(directory: Path) -> str | None:
    """The name of the current generation, or None when there is no book yet. Of a damaged pointer, what is left."""
    try:
        name = (directory / "CURRENT").read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    return re.sub(r"[^\w-]", "_", name)[:100] or "_"


def published(directory: Path) -> list[str]:
    """The names of all published generations that are there, the newest first."""
    folder = directory / "generations"
    return sorted((path.stem for path in folder.glob("*.checksums") if (folder / path.stem).is_dir()), reverse=True)


def damage_of_current(directory: Path) -> str | None:
    """What is wrong with the current generation, in a few words; None if nothing is, or if there is no book yet."""
    name = current_name(directory)
    if name is None:
        return "the pointer to its current state is gone" if published(directory) else None
    return checksums.damage(generation_path(directory, name))


def last_good(directory: Path) -> str | None:
    """The newest published generation but the current one that is not damaged."""
    current = current_name(directory)
    names = (name for name in published(directory) if name != current)
    return next((name for name in names if checksums.damage(generation_path(directory, name)) is None), None)


def refusal(damage: str) -> str:
    """What to say of a damaged index that cannot be served."""
    return f"The index is damaged: {damage}. {REBUILD}"


def generation_path(directory: Path, name: str) -> Path:
    """Where a generation lies."""
    return directory / "generations" / name


def publish(directory: Path, name: str) -> None:
    """Make a complete generation the current one; after a crash it is either the old or the new one."""
    _sync_tree(generation_path(directory, name))
    _sync(checksums.write(generation_path(directory, name)))
    _sync(directory / "generations")
    pointer = directory / "CURRENT.new"
    pointer.write_text(name, "ascii")
    _sync(pointer)
    pointer.replace(directory / "CURRENT")
    _sync(directory)


def sweep_generations(directory: Path) -> None:
    """Remove all generations but the current one and, in case that is damaged one day, the one published before it.
    Only for who holds the writer's lock."""
    current = current_name(directory)
    keep = [current, *[name for name in published(directory) if name != current][:1]]
    kept = {name for one in keep if one for name in (one, f"{one}.checksums")}
    for path in (directory / "generations").iterdir():
        if path.name not in kept:
            _remove(path)


@contextlib.contextmanager
def writer_lock(directory: Path) -> Iterator[None]:
    """Hold the place of the one writer; `IngestionError` if it is taken."""
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
    """A reader's own copy of a generation."""

    name: str
    path: Path
    current: str | None  # the current generation, which is another one if that is damaged
    damage: str | None = None  # why another one is served


@contextlib.contextmanager
def private_copy(directory: Path) -> Iterator[Copy]:
    """A reader's own copy of the current generation, verified, and removed afterwards. If the current one is damaged,
    the one before it is served.

    Copies left by killed readers are recognised by their lock, which died with them."""
    if current_name(directory) is None and not published(directory):
        raise IndexMissing(NO_BOOK)
    try:
        readers = _readers_folder(directory)
    except OSError as error:
        raise RetrievalUnavailable(f"There is no room for a copy of the index: {error}") from error
    place = readers / f"{os.getpid()}-{secrets.token_hex(4)}"
    with (readers / ".lock").open("w") as guard:  # no other process may find our directory before it is locked
        fcntl.flock(guard, fcntl.LOCK_EX)
        _sweep_readers(readers)
        place.mkdir()
        lock = (place / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield _copy_current(directory, place / "shard")
    finally:
        _remove(place)
        lock.close()


def _readers_folder(directory: Path) -> Path:
    """Where readers' copies lie: in the directory, or where that is read-only in a private temporary folder."""
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
        raise PermissionError(errno.EPERM, "belongs to somebody else", str(readers))
    return readers


def _sweep_readers(readers: Path) -> None:
    for path in readers.iterdir():
        if path.is_dir():
            with contextlib.suppress(FileNotFoundError):  # its owner is removing it right now
                with (path / "lock").open("a") as lock:
                    abandoned = _try_lock(lock.fileno())
                if abandoned:
                    _remove(path)


def _copy_current(directory: Path, target: Path) -> Copy:
    """Copy the current generation, whichever it is by the time a copy succeeds; if it is damaged, the one before."""
    while True:
        current = current_name(directory)
        damage = "the pointer to its current state is gone" if current is None else _copy(directory, current, target)
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
    """Copy a generation and verify the copy. What is wrong with it is returned, and the copy removed."""
    source = generation_path(directory, name)
    try:
        copy_shard(source, target, share=True)
        damage = checksums.damage(source, target)
    except (OSError, shutil.Error) as error:
        damage = f"it cannot be read: {error}"
    if damage is None and source.exists():
        return None
    shutil.rmtree(target, ignore_errors=True)
    return damage or f"{name} is gone"


def copy_shard(source: Path, target: Path, *, share: bool) -> None:
    """Copy a shard's directory. With `share`, files that readers never change become hard links."""

    def copy(from_: str, to: str) -> None:
        if share and any(Path(from_).match(pattern) for pattern in _SHARED):
            with contextlib.suppress(OSError):  # a filesystem without hard links
                os.link(from_, to)
                return
        _copy_sparse(from_, to)

    copy_function: Callable[[str, str], object] = copy
    try:
        shutil.copytree(source, target, copy_function=copy_function)
    except shutil.Error as failures:  # a list, one for each file: the first says why
        raise OSError(failures.args[0][0][2]) from failures


def _copy_sparse(from_: str, to: str) -> None:
    """Copy a file with its holes: an engine's files are mostly holes, a young 127 MB index holds 6 MB."""
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
    """Rename a directory before it is removed, so that one that is half removed is never taken for complete."""
    if path.is_file():
        path.unlink(missing_ok=True)
        return
    doomed = path.with_name(f"{path.name}.removed")
    with contextlib.suppress(FileNotFoundError):
        path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


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
