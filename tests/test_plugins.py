"""Embedders, writers and readers of another package, found through its entry points."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse import __version__, plugins
from chapterverse.errors import ConfigurationError
from chapterverse.ingestion.document import Document, Unreadable
from chapterverse.ingestion.formats import format_of_file, readable_extensions
from chapterverse.ingestion.readers import read
from chapterverse.settings import Settings
from chapterverse.testing import HashEmbedder
from chapterverse.wiring import choose_embedder, choose_writer
from tests.cli.process import chapterverse

CODE = """
from chapterverse.ingestion.document import Draft, Part
from chapterverse.testing import HashEmbedder
from chapterverse.writing.excerpt import ExcerptWriter


def hashed(settings):
    return HashEmbedder(settings.openai_embedding_dimension)


class ShoutingWriter(ExcerptWriter):
    name = "shouting"

    def __init__(self, settings):
        super().__init__()


def read_org(document):
    lines = document.data.decode().splitlines()
    return [Draft(lines[0].removeprefix("* "), tuple(Part("paragraph", line) for line in lines[1:] if line))]


no_function = 7
"""
ENTRY_POINTS = """
[chapterverse.embedders]
hashed = fake_engines:hashed
lost = fake_engines:nowhere
seven = fake_engines:no_function
[chapterverse.writers]
shouting = fake_engines:ShoutingWriter
[chapterverse.readers]
org = fake_engines:read_org
broken = no_such_module:read
"""


def install(folder: Path, name: str, entry_points: str) -> None:
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    site = tmp_path / "site"
    install(site, "fake_engines", ENTRY_POINTS)
    (site / "fake_engines.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(site))
    plugins.installed.cache_clear()
    yield site
    plugins.installed.cache_clear()
    sys.modules.pop("fake_engines", None)


def document(form: str) -> Document:
    return Document("https://book.example/a", f"a.{form}", "book", form, b"* Heron\n\nHeron has a mass of 14 kg.\n")


@pytest.mark.usefixtures("package")
def test_embedder_is_chosen_by_name_and_gets_the_settings() -> None:
    embedder, why = choose_embedder(Settings.load(embeddings="hashed", openai_embedding_dimension=32))
    assert isinstance(embedder, HashEmbedder)
    assert (embedder.fingerprint.dimension, why) == (32, "EMBEDDINGS is hashed")


@pytest.mark.usefixtures("package")
def test_writer_is_chosen_by_name_even_with_a_key() -> None:
    writer, why = choose_writer(Settings.load(writer="shouting", openai_api_key="key"))
    assert (writer.name, why) == ("shouting", "WRITER is shouting")


@pytest.mark.usefixtures("package")
def test_reader_is_chosen_by_extension() -> None:
    assert format_of_file("notes/A.ORG") == "org"
    assert ".org" in readable_extensions()
    [draft] = read(document("org"))
    assert (draft.title, draft.parts[0].text) == ("Heron", "Heron has a mass of 14 kg.")


def test_unknown_names_are_rejected_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"EMBEDDINGS: .*one of auto, local, cohere, openai; .*'hashed'"):
        Settings.load(embeddings="hashed")
    with pytest.raises(ConfigurationError, match=r"WRITER: .*one of auto; .*'shouting'"):
        Settings.load(writer="shouting")
    assert format_of_file("a.org") is None


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "message"),
    [("lost", "cannot be loaded: AttributeError"), ("seven", "is not a function or class: fake_engines:no_function")],
)
def test_unusable_embedder_is_reported_with_its_package(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"embedder '{name}' of the package fake_engines 1\.2 {message}"):
        choose_embedder(Settings.load(embeddings=name))


@pytest.mark.usefixtures("package")
def test_broken_reader_fails_only_its_documents() -> None:
    with pytest.raises(Unreadable, match=r"reader 'broken' of the package fake_engines 1\.2 .*ModuleNotFoundError"):
        read(document("broken"))


def test_two_packages_with_the_same_name_are_rejected(package: Path) -> None:
    install(package, "other_engines", "[chapterverse.embedders]\nhashed = elsewhere:hashed\n")
    with pytest.raises(ConfigurationError, match=r"Two packages add the embedder 'hashed': .*other_engines 1\.2"):
        Settings.load(embeddings="hashed")


@pytest.mark.slow
def test_ingest_and_search_work_with_another_package(package: Path, tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "heron.org").write_bytes(document("org").data)
    environment = {
        "PYTHONPATH": os.pathsep.join((str(package), os.environ.get("PYTHONPATH", ""))),
        "EMBEDDINGS": "hashed",
    }
    ingested = chapterverse(tmp_path / "home", "ingest", str(tmp_path / "book"), "--json", **environment)
    assert ingested.returncode == 0, ingested.stderr
    found = chapterverse(tmp_path / "home", "search", "mass of Heron", "--json", **environment)
    assert json.loads(found.stdout)["results"][0]["page_title"] == "Heron", found.stderr


def test_package_runs_as_a_module() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "chapterverse", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout.startswith("chapterverse") and __version__ in shown.stdout
