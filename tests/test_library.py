"""Edge cases of the Python interface. `test_docs_python.py` tests its usual use."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from chapterverse import Book, SyncBook
from chapterverse.errors import ConfigurationError, IndexMissing, IngestionError, NotFound, ValidationFailed
from tests.llm_stub import serving_llm

pytestmark = pytest.mark.slow


async def test_book_opens_once_for_concurrent_calls_and_reopens_after_close(example_home: Path) -> None:
    book = Book.open(example_home)
    first, second = await asyncio.gather(book.search("What is ROS 2?"), book.search("What is ROS 2?", top_k=1))
    assert first.results[0] == second.results[0]
    await book.close()
    await book.close()
    async with book:
        assert (await book.search("nodes", filters={"module": "ros2"})).results[0].module == "ros2"


async def test_invalid_use_raises_typed_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="AGENT_TOP_K"):
        Book.open(tmp_path, agent_top_k=0)
    async with Book.open(tmp_path) as book:
        with pytest.raises(ValidationFailed, match="at least one source"):
            await book.ingest()
        with pytest.raises(TypeError, match="verison"):
            await book.ingest(tmp_path, verison="2.0")  # type: ignore[call-arg]
        with pytest.raises(IngestionError, match="no such file"):
            await book.ingest(tmp_path / "nowhere")
        with pytest.raises(IndexMissing):
            await book.ask("What is ROS 2?")
        with pytest.raises(ValidationFailed, match="selected_text: is required"):
            await book.ask("What?", selected_text=" ")
        with pytest.raises(ValidationFailed, match="top_k"):
            await book.search("x", top_k=21)


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, chapterverse; print([name for name in sys.modules if name.startswith('chapterverse')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['chapterverse']\n"
    with pytest.raises(ImportError):
        from chapterverse import Library  # type: ignore[attr-defined] # noqa: F401


def test_sync_book_works_with_and_without_an_event_loop(example_home: Path) -> None:
    with SyncBook.open(example_home) as book:
        assert book.search("What is ROS 2?", top_k=1).results[0].module == "ros2"
        text = "Kestrel is a drone. Its winch lifts 12 kg."
        answer = book.ask("How much does the winch lift?", selected_text=text)
        events = list(book.stream("How much does the winch lift?", selected_text=text))
        assert events[-1].type == "done"
        assert "".join(event.content for event in events if event.type == "chunk") == answer.answer
        with pytest.raises(ValidationFailed, match="top_k"):
            next(book.stream("x", top_k=21))
        early = book.stream("How much does the winch lift?", selected_text=text)
        next(early)
        early.close()  # does not wait for the rest
        with pytest.raises(ValidationFailed):
            book.ask("")
        book.close()

        async def notebook() -> int:
            return book.search("nodes", top_k=2).total_results

        assert asyncio.run(notebook()) == 2, "it opens again, also in a running event loop"
    assert not [thread for thread in threading.enumerate() if thread.name == "chapterverse"]


# Prints global state that using a book with a language model changed: switches of the SDK, replaced modules, logging,
# warnings, signals and the environment.
_GLOBAL_STATE = """
import asyncio, gc, logging, os, signal, sys, warnings
import agents, openai
from agents.models import _openai_shared as shared
from agents.tracing import get_trace_provider
from chapterverse import Book

def state():
    provider = get_trace_provider()
    return {
        "tracing": provider._disabled,
        "processors": provider._multi_processor._processors,
        "client": shared.get_default_openai_client(),
        "key": shared.get_default_openai_key(),
        "responses": shared.get_use_responses_by_default(),
        "openai": (openai.api_key, openai.base_url),
        "root": (logging.root.level, list(logging.root.handlers)),
        "logs": [(log.level, log.handlers) for log in map(logging.getLogger, ("openai.agents", "openai", "httpx"))],
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        "environment": dict(os.environ),
        "hooks": (sys.excepthook, sys.unraisablehook, sys.displayhook),
        "garbage": (gc.isenabled(), gc.get_threshold()),
    }

before = state()
modules = dict(sys.modules)

async def main():
    model = {"openai_api_key": "k", "openai_base_url": sys.argv[2], "openai_model": "m"}
    async with Book.open(sys.argv[1], **model) as book:
        print((await book.ask("What is ROS 2?")).status)

asyncio.run(main())
after = state()
print([name for name in before if before[name] != after[name]])
print([name for name in modules if sys.modules.get(name) is not modules[name]])
new = [(name, module) for name, module in sys.modules.items() if name not in modules and module is not None]
new = [(name, module) for name, module in new if ".onnxruntime_pybind11_state." not in name]  # parts of a C extension
print([name for name, module in new if getattr(module, "__spec__", None) is None or module.__spec__.name != name])
"""


def test_book_does_not_change_global_state(example_home: Path, database_url: str) -> None:
    with serving_llm() as stub:
        arguments = [sys.executable, "-c", _GLOBAL_STATE, str(example_home), stub.url]
        environment = os.environ | {"DATABASE_URL": database_url}
        ran = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    status, switches, replaced, foreign = ran.stdout.splitlines()
    assert status in ("answered", "refused")
    assert (switches, replaced) == ("[]", "[]")
    assert foreign == "[]", "a module without a spec"


def test_cli_on_windows_fails_with_one_line() -> None:
    script = """
import sys
sys.modules |= dict.fromkeys(["fcntl", "pwd", "resource"])  # what Windows lacks
import chapterverse.library, chapterverse.models, chapterverse.terminal.ingestion
from chapterverse.cli import main
sys.platform = "win32"
main(["search", "x"])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == ConfigurationError.exit_code
    wanted = "error: Chapterverse runs on Linux and macOS. On Windows, use WSL 2 or a container."
    assert " ".join(ran.stderr.split()) == wanted


async def test_rate_stores_a_rating_for_a_turn(example_home: Path, postgres_url: str) -> None:
    async with Book.open(example_home, database_url=postgres_url) as book:
        answer = await book.ask("What is ROS 2?")
        kept = await book.rate(answer.turn_id, "down", reason="unclear", comment="Too short.")
        assert (kept.turn_id, kept.session_id) == (answer.turn_id, answer.session_id)
        assert (kept.rating, kept.reason, kept.comment) == ("down", "unclear", "Too short.")
        with pytest.raises(NotFound, match="There is no turn"):
            await book.rate(str(uuid4()), "up")
        with pytest.raises(ValidationFailed, match="turn_id"):
            await book.rate(None, "up")


def test_sync_rate_stores_a_rating(example_home: Path, postgres_url: str) -> None:
    with SyncBook.open(example_home, database_url=postgres_url) as book:
        assert book.rate(book.ask("What is ROS 2?").turn_id, "up").rating == "up"
