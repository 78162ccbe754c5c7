"""Shared fixtures: settings of this machine are removed, and the example book is ingested once per run."""

import asyncio
import fcntl
import gc
import logging
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import httpcore2
import pytest

from bench import editions
from chapterverse import SyncBook
from chapterverse.embeddings import onnx_models
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.settings import Settings
from chapterverse.trained import Passage, Read, SectionReader, shared_reader
from chapterverse.wiring import open_engines
from tests.index.places import copy_book, memory_folder
from tests.model_memory import sitecustomize
from tests.served import Served, serve

pytest_plugins = ["tests.postgres_fixture"]

# A shell ignores Ctrl-C for processes in the background, and the tests' child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
EXAMPLE_BOOK = ROOT / "examples" / "book"
SMALL_BOOK = ROOT / "tests" / "faults" / "book"


def pytest_configure() -> None:
    """Puts temporary folders into memory if there is room: an ingest syncs many files, which is slow on a disk."""
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and (memory := memory_folder(6 << 30)):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(memory)


ALL_SLOW = re.compile(r"^pytestmark = (?:\[\n)?.*mark\.slow", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Does not import files with only slow tests if those are deselected, because importing them takes long."""
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return True if ALL_SLOW.search(collection_path.read_text("utf-8")) else None


gc.disable()  # until all tests are imported: nearly all objects made until then stay alive


def pytest_collection_finish() -> None:
    """Excludes the imported objects from garbage collection, because they stay alive to the end."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With xdist, moves the longest files to the front, so that none of them is left at the end: first those with the
    longest timeouts, then those with slow tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    length: dict[Path, float] = defaultdict(float)
    for item in items:
        timeout = item.get_closest_marker("timeout")
        given = timeout.args[0] if timeout else float(item.get_closest_marker("slow") is not None)
        length[item.path] = max(length[item.path], given)
    items.sort(key=lambda item: -length[item.path])


@pytest.fixture(scope="session", autouse=True)
def without_settings_of_this_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in Settings.model_fields:
            patch.delenv(name.upper(), raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def cached_model_outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Caches the outputs of the models during this run, for this process and those that it starts."""
    folder = run_folder(tmp_path_factory) / "model-memory"
    folder.mkdir(exist_ok=True)
    opened, run = sitecustomize.remembering(onnx_models, str(folder), lazily=False)
    paths = (sitecustomize.__file__.rpartition("/")[0], os.environ.get("PYTHONPATH", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_models.Model, "__init__", opened)
        patch.setattr(onnx_models.Model, "run", run)
        patch.setenv("MODEL_MEMORY", str(folder))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


@pytest.fixture(scope="session", autouse=True)
def cached_readings() -> Iterator[None]:
    """Caches the scores of the shared section reader: reading is most of the work of an answer without a key, and many
    tests ask the same questions."""
    read, shared = SectionReader._read, shared_reader()
    remembered: dict[tuple[str, Passage], Read] = {}

    def read_once(self: SectionReader, question: str, passage: Passage) -> Read:
        if self is not shared:
            return read(self, question, passage)
        if (question, passage) not in remembered:
            remembered[question, passage] = read(self, question, passage)
        return remembered[question, passage]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SectionReader, "_read", read_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def cached_certificates() -> Iterator[None]:
    """Caches the machine's certificates: loading them takes 25 ms for every HTTP client, and test servers need none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True)
def unchanged_log_level() -> Iterator[None]:
    """Restores the log level, because the command line sets it when it runs in the process of the tests."""
    logger = logging.getLogger("chapterverse")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session")
def example_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the example book."""
    return home_with(EXAMPLE_BOOK, tmp_path_factory)


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two short pages, where answers without a key are cheap."""
    return home_with(SMALL_BOOK, tmp_path_factory)


@pytest.fixture(scope="session")
def editions_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two versions of one book, which differ in every fact, and with another book."""

    def fill(home: Path) -> Path:
        with SyncBook.open(home) as book:
            for version in editions.VERSIONS:
                docs = editions.write_docs(home.with_name(version) / "docs", version, parts=3)
                book.ingest(docs, book=editions.BOOK, version=version, title="The Harbor")
            book.ingest(SMALL_BOOK, book="robots")
        return home

    return prepared_home("editions", tmp_path_factory, fill)


def home_with(book: Path, folders: pytest.TempPathFactory) -> Path:
    """A home with the book."""
    return prepared_home(book.parent.name, folders, lambda home: filled(home, book))


def prepared_home(name: str, folders: pytest.TempPathFactory, fill: Callable[[Path], Path]) -> Path:
    """Returns a home for this process. The first process of the run that needs it fills it for all processes."""
    prepared = run_folder(folders) / f"prepared-{name}"
    home = folders.mktemp("home") / "home"
    with prepared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not prepared.exists():
            fill(home).rename(prepared)
    copy_book(prepared, home)
    return home


def run_folder(folders: pytest.TempPathFactory) -> Path:
    """A folder that all processes of the run share."""
    folder = folders.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def filled(home: Path, book: Path) -> Path:
    """Ingests the book into the home; returns the home."""

    async def fill() -> None:
        async with open_engines(Settings.load(chapterverse_home=home)) as engines:
            workshop = Workshop(engines.index, engines.embedder, home)
            ledger = await ingest([open_source(str(book), SourceOptions())], workshop)
            assert ledger.count("failed") == 0

    asyncio.run(fill())
    return home


@pytest.fixture(scope="session")
def example_server(example_home: Path) -> Iterator[Served]:
    """The real server with the example book, on a real port."""
    with serve(Settings.load(chapterverse_home=example_home, api_rate_limit=100_000)) as served:
        yield served


@pytest.fixture(scope="session")
def small_server(small_home: Path) -> Iterator[Served]:
    """The real server with the two short pages."""
    with serve(Settings.load(chapterverse_home=small_home, api_rate_limit=100_000)) as served:
        yield served


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Prints at the end, one line each, why tests were skipped and how many."""
    terminalreporter.reportchars = terminalreporter.reportchars.replace(
        "s", ""
    )  # otherwise each skipped test has a line
    yield
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    reasons = Counter(str(why[2]).removeprefix("Skipped: ") for why in skipped if isinstance(why, tuple))
    for reason, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"{tests} left out: {reason}")
