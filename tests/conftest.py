"""Fixtures that many tests share: no setting of the machine leaks in, and the example book is ingested once."""

import asyncio
import fcntl
import gc
import logging
import os
import re
import shutil
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
from tests.model_memory import sitecustomize
from tests.served import Served, serve

pytest_plugins = ["tests.postgres_fixture"]

# A shell that runs the tests in the background ignores Ctrl-C for them, and so would every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
EXAMPLE_BOOK = ROOT / "examples" / "book"
SMALL_BOOK = ROOT / "tests" / "faults" / "book"


ALL_SLOW = re.compile(r"^pytestmark = (?:\[\n)?.*mark\.slow", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without slow tests, a file that has no other is not even loaded: loading all takes longer than most tests."""
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return True if ALL_SLOW.search(collection_path.read_text("utf-8")) else None


gc.disable()  # until all tests are loaded: nearly all that is made until then stays


def pytest_collection_finish() -> None:
    """What was loaded stays to the end, so the collector need not look at it again and again."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side, the files that take longest come first, so that no process has one of them left at the end: those
    that are given more time than others, then those with slow tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    length: dict[Path, float] = defaultdict(float)
    for item in items:
        timeout = item.get_closest_marker("timeout")
        given = timeout.args[0] if timeout else float(item.get_closest_marker("slow") is not None)
        length[item.path] = max(length[item.path], given)
    items.sort(key=lambda item: -length[item.path])


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_this_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in Settings.model_fields:
            patch.delenv(name.upper(), raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def models_are_remembered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a model said is not computed again in this run, neither in this process nor in those that it starts."""
    folder = of_the_run(tmp_path_factory) / "model-memory"
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
def readings_are_remembered() -> Iterator[None]:
    """Reading is most of the work of an answer without a key, and the same questions are asked again and again: what
    the reader of this process has read is not read again."""
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
def certificates_are_read_once() -> Iterator[None]:
    """Every HTTP client reads those of the machine, which takes 25 ms. Here none is used: servers are on loopback."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True)
def log_level_stays() -> Iterator[None]:
    """The command line, run inside the tests' process, sets the level for all of it."""
    logger = logging.getLogger("chapterverse")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session")
def example_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that holds the example book."""
    return home_with(EXAMPLE_BOOK, tmp_path_factory)


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two short pages: an answer without a key costs little, so that many can be asked for at once."""
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
    """A home of this process, which the first process of the run that needs it fills for all."""
    prepared = of_the_run(folders) / f"prepared-{name}"
    home = folders.mktemp("home") / "home"
    with prepared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not prepared.exists():
            fill(home).rename(prepared)
    shutil.copytree(prepared, home, ignore=shutil.ignore_patterns("readers", "*.lock"))
    return home


def of_the_run(folders: pytest.TempPathFactory) -> Path:
    """A folder that all processes of the run share."""
    folder = folders.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def filled(home: Path, book: Path) -> Path:
    """The home, with the book ingested."""

    async def fill() -> None:
        async with open_engines(Settings.load(chapterverse_home=home)) as engines:
            workshop = Workshop(engines.index, engines.embedder, home)
            ledger = await ingest([open_source(str(book), SourceOptions())], workshop)
            assert ledger.count("failed") == 0

    asyncio.run(fill())
    return home


@pytest.fixture(scope="session")
def example_server(example_home: Path) -> Iterator[Served]:
    """The real server over the example book, on a real port."""
    with serve(Settings.load(chapterverse_home=example_home, api_rate_limit=100_000)) as served:
        yield served


@pytest.fixture(scope="session")
def small_server(small_home: Path) -> Iterator[Served]:
    """The real server over the two short pages."""
    with serve(Settings.load(chapterverse_home=small_home, api_rate_limit=100_000)) as served:
        yield served


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say at the end, in one line each, what this machine lacks and how many tests were left out for it."""
    terminalreporter.reportchars = terminalreporter.reportchars.replace("s", "")  # else each test says it
    yield
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    reasons = Counter(str(why[2]).removeprefix("Skipped: ") for why in skipped if isinstance(why, tuple))
    for reason, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"{tests} left out: {reason}")
