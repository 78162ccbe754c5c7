"""Fixtures that many tests share: no setting of the machine leaks in, and the example book is ingested once."""

import asyncio
import logging
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.config import Settings
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.wiring import open_engines
from tests.served import Served, serve

pytest_plugins = ["tests.postgres_fixture"]

# A shell that runs the tests in the background ignores Ctrl-C for them, and so would every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
EXAMPLE_BOOK = ROOT / "examples" / "book"
SMALL_BOOK = ROOT / "tests" / "faults" / "book"


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_this_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in Settings.model_fields:
            patch.delenv(name.upper(), raising=False)
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
    return filled(tmp_path_factory.mktemp("home"), EXAMPLE_BOOK)


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two short pages: an answer without a key costs little, so that many can be asked for at once."""
    return filled(tmp_path_factory.mktemp("home"), SMALL_BOOK)


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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say at the end, in one line each, what this machine lacks and how many tests were left out for it."""
    terminalreporter.reportchars = terminalreporter.reportchars.replace("s", "")  # else each test says it
    yield
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    reasons = Counter(str(why[2]).removeprefix("Skipped: ") for why in skipped if isinstance(why, tuple))
    for reason, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"{tests} left out: {reason}")
