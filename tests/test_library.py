"""The book from Python, where docs/python.md does not look: its edges and its end."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from chapterverse import Book
from chapterverse.errors import CollectionNotFoundError, ConfigurationError, IngestionError, ValidationFailed

pytestmark = pytest.mark.slow


async def test_it_opens_once_for_many_and_again_after_its_end(example_home: Path) -> None:
    book = Book.open(example_home)
    first, second = await asyncio.gather(book.search("What is ROS 2?"), book.search("What is ROS 2?", top_k=1))
    assert first.results[0] == second.results[0]
    await book.close()
    await book.close()
    async with book:
        assert (await book.search("nodes", filters={"module": "ros2"})).results[0].module == "ros2"


async def test_errors_have_their_types(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="AGENT_TOP_K"):
        Book.open(tmp_path, agent_top_k=0)
    async with Book.open(tmp_path) as book:
        with pytest.raises(ValidationFailed, match="at least one source"):
            await book.ingest()
        with pytest.raises(IngestionError, match="no such file"):
            await book.ingest(tmp_path / "nowhere")
        with pytest.raises(CollectionNotFoundError):
            await book.ask("What is ROS 2?")
        with pytest.raises(ValidationFailed, match="selected_text is required"):
            await book.ask("What?", selected_text=" ")
        with pytest.raises(ValidationFailed, match="top_k"):
            await book.search("x", top_k=21)


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, chapterverse; print([name for name in sys.modules if name.startswith('chapterverse')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['chapterverse']\n"
    with pytest.raises(ImportError):
        from chapterverse import Library  # type: ignore[attr-defined] # noqa: F401
