"""A checksum inside each stored chunk and page, so that text that changed on disk is never quoted.

A page has two: one of its text and blocks, which a list of pages leaves out, and one of the rest. What an older version
stored has none and is taken as it is.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from chapterverse.errors import IndexDamaged

SEAL: Final = "seal"
BODY_SEAL: Final = "body_seal"
REBUILD: Final = "Rebuild it with: chapterverse ingest --fresh <folder or URL>"


def sealed(payload: dict[str, Any], body: Iterable[str] = ()) -> dict[str, Any]:
    """The payload with its checksums; `body` names the fields that have one of their own."""
    body = tuple(body)
    seals = {SEAL: _digest(payload, body)}
    if body:
        seals[BODY_SEAL] = _digest({name: payload[name] for name in body})
    return payload | seals


def require_sealed(payload: Mapping[str, Any], body: Iterable[str] = ()) -> None:
    """Raise `IndexDamaged` if a payload is not what was stored."""
    body = tuple(body)
    whole = SEAL not in payload or payload[SEAL] == _digest(payload, body)
    if whole and BODY_SEAL in payload and all(name in payload for name in body):
        whole = payload[BODY_SEAL] == _digest({name: payload[name] for name in body})
    if not whole:
        raise IndexDamaged(f"The index is damaged: a stored text is not what was ingested. {REBUILD}")


def _digest(payload: Mapping[str, Any], without: Iterable[str] = ()) -> str:
    left_out = {SEAL, BODY_SEAL, *without}
    kept = {name: value for name, value in payload.items() if name not in left_out}
    return hashlib.sha256(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
