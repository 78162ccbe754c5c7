"""Prepares the race: an environment for each service, the installed product, and the books.

Everything is in `.cache/race`. Environments are created once for each lock file and reused. The product is built from
this tree and installed every time, without development tools.
"""

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from bench.race.processes import environment
from bench.race.racers import CACHE, CONTROL, FLOOR, OURS, OURS_KEYLESS, OURS_LOCAL, OURS_UNJUDGED, PEERS, RACERS, Racer
from bench.results import ROOT

BOOK: Final = ROOT / "examples" / "book"
LARGE_BOOK: Final = ROOT / "build" / "race-book"  # LlamaIndex skips folders below one whose name starts with a dot
_LARGE_ARCHIVE: Final = ROOT.parent / "shared" / "data" / "corpora" / "rust_book" / "rust_book.tar.gz"
_LOCK: Final = ROOT / "requirements.lock"
_PIP: Final = ("-m", "pip", "--quiet", "--disable-pip-version-check")
# Services without an ingest of their own, or with the same one as another service, get a copy of its result.
_COPIES: Final = {FLOOR: "agents_sdk", CONTROL: "agents_sdk", OURS_KEYLESS: OURS_LOCAL, OURS_UNJUDGED: OURS}


def questions() -> list[str]:
    """Return the questions of the example book that it answers."""
    lines = (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines()
    return [one["question"] for one in map(json.loads, lines) if one["answerable"]]


def make_environments() -> None:
    """Install the peers and the product."""
    if not PEERS.is_dir():
        raise SystemExit(f"The peers' services are not at {os.path.relpath(PEERS, ROOT)}: there is nobody to race.")
    for name in dict.fromkeys(racer.venv for racer in RACERS if not racer.ours):
        lock = PEERS / f"lock-{name}.txt"
        _make(name, lock.read_bytes(), "install", "-r", str(lock))
    _install_product()


def _install_product() -> None:
    """Install the product as a user gets it, without development tools, from this tree."""
    wheels, venv = CACHE / "wheels", CACHE / "venv-chapterverse"
    current = venv / ".product"
    if current.exists() and current.read_text("utf-8") == product_digest():
        return
    for stale in (wheels, ROOT / "build" / "lib"):  # setuptools would pack stale files
        shutil.rmtree(stale, ignore_errors=True)
    _run(sys.executable, *_PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(ROOT))
    (wheel,) = wheels.glob("*.whl")
    needed = _LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    _make("chapterverse", needed, "install", "--require-hashes", "-r", str(_LOCK))
    _run(str(venv / "bin" / "python"), *_PIP, "install", "--no-deps", "--force-reinstall", str(wheel))
    current.write_text(product_digest(), "utf-8")


def product_digest() -> str:
    """A digest of the product's files."""
    sources = sorted(path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digest = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", _LOCK, *sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def make_books() -> None:
    """Ingest the example book with each service; the large book is for measuring ingests."""
    if not LARGE_BOOK.is_dir() and _LARGE_ARCHIVE.is_file():
        with tarfile.open(_LARGE_ARCHIVE) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # exists since Python 3.11.4
            archive.extractall(LARGE_BOOK)
    ours = product_digest()
    for racer in RACERS:
        made, wanted = racer.store / ".made", ours if racer.ours else ""
        if not made.exists() or made.read_text("utf-8") != wanted:
            shutil.rmtree(racer.store, ignore_errors=True)
            if racer.name not in _COPIES:
                _ingest_at_last(racer)
                made.write_text(wanted, "utf-8")
    for name, source in _COPIES.items():
        if not _named(name).store.exists():
            shutil.copytree(_named(source).store, _named(name).store)


def _ingest_at_last(racer: Racer) -> None:
    """Ingest the book. On a busy machine the embedder may time out at first. It caches what it has computed, so the
    ingest is retried."""
    for tries_left in (2, 1, 0):
        try:
            return run_ingest(racer, BOOK)
        except SystemExit:
            if not tries_left:
                raise


def run_ingest(racer: Racer, book: Path, store: Path | None = None) -> None:
    """Run a service's own ingest of a book."""
    target = store or racer.store
    target.mkdir(parents=True, exist_ok=True)
    target.chmod(0o755)  # the embedded Postgres does not run as root and must be able to read the folder
    _run(str(racer.python), *racer.ingest, str(book), folder=racer.folder, env=environment(racer, store))


def installed_mb(racer: Racer) -> tuple[float, int]:
    """Return the size of a service's environment on disk without bytecode and pip, and the number of distributions."""
    site = next((CACHE / f"venv-{racer.venv}").glob("lib/python*/site-packages"))
    left_out = ("pip", "setuptools")
    files = (
        path
        for path in site.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.relative_to(site).parts[0].startswith(left_out)
    )
    blocks = sum(path.stat().st_blocks * 512 for path in files)
    others = [path for path in site.glob("*.dist-info") if not path.name.startswith(left_out)]
    return round(blocks / 1e6, 1), len(others)


def pages_of(book: Path) -> int:
    """The number of pages that all services read."""
    return sum(1 for path in book.rglob("*.md"))


def _named(name: str) -> Racer:
    return next(racer for racer in RACERS if racer.name == name)


def _make(name: str, needed: bytes, *install: str) -> None:
    venv, digest = CACHE / f"venv-{name}", hashlib.sha256(needed).hexdigest()
    ready = venv / ".ready"
    if ready.exists() and ready.read_text("utf-8") == digest:
        return
    print(f"installing {name}", file=sys.stderr, flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(venv))
    _run(str(venv / "bin" / "python"), *_PIP, *install)
    ready.write_text(digest, "utf-8")


def _run(*command: str, folder: Path = CACHE, env: dict[str, str] | None = None) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(itertools.islice(command, 4))} … failed:\n{done.stderr[-2000:]}")
