"""Checksums of a generation and its content: written when it is published, verified before it is opened.

Each generation has a JSON file next to it, which lists every file with the SHA-256 of its content and has a checksum of
itself. Holes of a sparse file count as zeros, so that a copy on another filesystem has the same checksum.

Each stored chunk and page has a checksum, too, so that text that changed on disk is never quoted. A page has two: one
of its text and blocks, which a list of pages leaves out, and one of the rest. Older versions stored none; such data is
not verified.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from chapterverse.errors import IndexDamaged

SEAL: Final = "seal"
BODY_SEAL: Final = "body_seal"
REBUILD: Final = "Rebuild it with: chapterverse ingest --fresh <folder or URL>"

_UNIT = 1 << 16  # bytes hashed at once; units of zeros are skipped
_ZEROS = bytes(_UNIT)


def place_of(generation: Path) -> Path:
    """The path of the checksums of a generation."""
    return generation.with_name(f"{generation.name}.checksums")


def write(generation: Path) -> Path:
    """Write the checksums of a generation."""
    files = {path.relative_to(generation).as_posix(): _file_digest(path) for path in _files(generation)}
    target = place_of(generation)
    scratch = target.with_name(f"{target.name}.new")
    scratch.write_text(json.dumps({"files": files, "checksum": _of(files)}, indent=0, sort_keys=True), "utf-8")
    scratch.replace(target)
    return target


def damage(generation: Path, content: Path | None = None) -> str | None:
    """What is wrong with a generation, or with a copy of it; None if nothing is.

    A generation of an older version has no checksums and is not verified."""
    try:
        text = place_of(generation).read_text("utf-8")
    except FileNotFoundError:
        return None if generation.is_dir() else f"{generation.name} is gone"
    except (OSError, UnicodeDecodeError):
        return "its checksums cannot be read"
    try:
        stated = json.loads(text)
        files: dict[str, str] = stated["files"]
        if stated["checksum"] != _of(files):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        return "its checksums are damaged"
    return _compare(files, content or generation)


def _compare(files: dict[str, str], folder: Path) -> str | None:
    found = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    for name in sorted(files.keys() | found.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in files:
            return f"{name} does not belong to it"
        try:
            if _file_digest(found[name]) != files[name]:
                return f"{name} is damaged"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return None


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _of(files: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    """The SHA-256 of a file's size and of all units that are not zeros, each with its offset."""
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(size.to_bytes(8, "big"))
        for offset in _units(file.fileno(), size):
            unit = os.pread(file.fileno(), _UNIT, offset)
            if unit != _ZEROS[: len(unit)]:
                digest.update(offset.to_bytes(8, "big"))
                digest.update(unit)
    return digest.hexdigest()


def _units(descriptor: int, size: int) -> Iterator[int]:
    """The offsets of all units that contain data."""
    end = following = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        for offset in range(max(following, start // _UNIT * _UNIT), end, _UNIT):
            yield offset
            following = offset + _UNIT


def sealed(payload: dict[str, Any], body: Iterable[str] = ()) -> dict[str, Any]:
    """The payload with its checksums; `body`: fields with a separate checksum."""
    body = tuple(body)
    seals = {SEAL: _payload_digest(payload, body)}
    if body:
        seals[BODY_SEAL] = _payload_digest({name: payload[name] for name in body})
    return payload | seals


def require_sealed(payload: Mapping[str, Any], body: Iterable[str] = ()) -> None:
    """Raise `IndexDamaged` if a payload does not match its checksums."""
    body = tuple(body)
    intact = SEAL not in payload or payload[SEAL] == _payload_digest(payload, body)
    if intact and BODY_SEAL in payload and all(name in payload for name in body):
        intact = payload[BODY_SEAL] == _payload_digest({name: payload[name] for name in body})
    if not intact:
        raise IndexDamaged(f"The index is damaged: a stored text does not match its checksum. {REBUILD}")


def _payload_digest(payload: Mapping[str, Any], without: Iterable[str] = ()) -> str:
    left_out = {SEAL, BODY_SEAL, *without}
    kept = {name: value for name, value in payload.items() if name not in left_out}
    return hashlib.sha256(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
