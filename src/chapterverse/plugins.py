"""Embedders, writers and readers that other packages add through entry points (docs/plugins.md)."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from chapterverse.errors import ConfigurationError

Kind = Literal["embedder", "writer", "reader"]


@cache
def installed(kind: Kind) -> Mapping[str, EntryPoint]:
    """The entry points of all installed packages in the group `chapterverse.<kind>s`, by name."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"chapterverse.{kind}s"):
        if entry.name in found:
            packages = f"{_package(found[entry.name])} and {_package(entry)}"
            raise ConfigurationError(f"Two packages add the {kind} {entry.name!r}: {packages}. Uninstall one of them.")
        found[entry.name] = entry
    return found


def load(kind: Kind, name: str) -> Callable[..., Any]:
    """The object of an entry point. Raises `ConfigurationError` that names the faulty package."""
    entry = installed(kind)[name]
    subject = f"The {kind} {name!r} of the package {_package(entry)}"
    try:
        loaded = entry.load()
    except Exception as failure:
        raise ConfigurationError(f"{subject} cannot be loaded: {type(failure).__name__}: {failure}") from failure
    if not callable(loaded):
        raise ConfigurationError(f"{subject} is not a function or class: {entry.value}")
    return loaded  # type: ignore[no-any-return]


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
