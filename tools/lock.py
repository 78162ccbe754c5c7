"""Writes the lock files: every distribution that the project needs, by exact version and by the hashes of its files.

There are three groups: `requirements.lock` is for running, `requirements-all.lock` adds the extras for servers, and
`requirements-test.lock` adds tests and checks. Each includes the one before it.

Versions are those that are installed, found by following the dependencies in pyproject.toml, so that packages installed
by hand are left out. Hashes are those that pip's package index lists for every file that Linux and macOS can use.
"""

import html
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from pip._internal.models.index import PyPI

ROOT: Final = Path(__file__).parent.parent
# Each group's file, the extras that it adds, and its description.
GROUPS: Final = (
    ("requirements.lock", (), "what running needs"),
    ("requirements-all.lock", ("all",), "what the extras for servers need besides"),
    ("requirements-test.lock", ("dev",), "what tests and checks need besides"),
)
# What only an older Python needs than the one that writes the files: group, name, version, marker.
OLDER: Final = (("requirements-all.lock", "async-timeout", "5.0.1", 'python_full_version < "3.11.3"'),)  # for redis
_LINK: Final = re.compile(r'<a [^>]*href="[^"#]*/([^"#/]+)#sha256=([0-9a-f]{64})"')
_PYTHON: Final = re.compile(r"cp3(?:1[1-9]|[2-9]\d)")  # tag of wheels for one version of Python


def main() -> None:
    """Write all lock files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    index = index_url()
    known: set[str] = set()
    before = ""
    for name, extras, about in GROUPS:
        needed = dict(pinned(wanted(project, extras), known))
        markers = {package: f" ; {marker}" for group, package, _, marker in OLDER if group == name}
        needed |= {package: version for _, package, version, _ in OLDER if package in markers}
        lines = [f"# Written by `make lock`: {about}, by exact version and hash."]
        lines += [f"-r {before}"] if before else []
        for package, version in sorted(needed.items()):
            hashes = sorted(set(hashes_of(package, version, index)))
            if not hashes:
                sys.exit(f"The package index has no file of {package} {version} for Linux or macOS.")
            pin = f"{package}=={version}{markers.get(package, '')}"
            lines.append(" \\\n    ".join([pin, *(f"--hash=sha256:{one}" for one in hashes)]))
        (ROOT / name).write_text("\n".join(lines) + "\n", "utf-8")
        known |= needed.keys()
        before = name
        sys.stderr.write(f"{name}: {len(needed)} packages\n")


def wanted(project: dict[str, Any], extras: Iterable[str]) -> list[str]:
    """The requirements of a group: the project's dependencies and build requirements, or those of extras."""
    if not extras:
        return [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    return [one for extra in extras for one in project["project"]["optional-dependencies"][extra]]


def pinned(wanted: Iterable[str], known: set[str]) -> Iterator[tuple[str, str]]:
    """The distributions that these requirements need and that are not known yet, with their versions."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(Requirement(text), frozenset[str]()) for text in wanted]
    while todo:
        requirement, extras = todo.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in extras | {""}):
            continue
        name, own = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name == "pip" or (name, own) in seen:
            continue  # pip comes with the interpreter; an older one would break it
        seen.add((name, own))
        found = distribution(requirement.name)
        if name not in known:
            yield name, found.version
        todo += [(Requirement(text), own) for text in found.requires or []]


def index_url() -> str:
    """The package index that pip is configured to use."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    return (asked.stdout.strip() or PyPI.simple_url).rstrip("/")


def hashes_of(package: str, version: str, index: str) -> Iterator[str]:
    """The hashes of all files of a version that Linux or macOS can use."""
    asked = Request(f"{index}/{package}/", headers={"Accept": "text/html"})  # noqa: S310 - the address is pip's
    with urlopen(asked, timeout=60) as answer:  # noqa: S310
        page = answer.read().decode()
    for name, digest in _LINK.findall(html.unescape(page)):
        if is_usable(name, version):
            yield digest


def is_usable(file: str, version: str) -> bool:
    """Whether a file belongs to this version and to a supported Python and operating system."""
    try:
        if not file.endswith(".whl"):
            return str(parse_sdist_filename(file)[1]) == version
        _, found, _, tags = parse_wheel_filename(file)
    except (InvalidWheelFilename, InvalidSdistFilename):
        return False
    fitting = [
        tag.interpreter.startswith(("py3", "cp3")) if tag.abi in ("none", "abi3") else _PYTHON.fullmatch(tag.abi)
        for tag in tags
        if not tag.platform.startswith("win")
    ]
    return str(found) == version and any(fitting)


if __name__ == "__main__":
    main()
