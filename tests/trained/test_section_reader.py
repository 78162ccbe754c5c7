"""The section reader: its weights, and scores for passages and units."""

import hashlib

import pytest

from chapterverse.errors import AgentUnavailable
from chapterverse.trained import UNREAD, Passage, SectionReader, shared_reader
from chapterverse.trained.section_reader import SHA256, WEIGHTS
from chapterverse.units import blocks_of_text, cut_units

MOST_BYTES = 36_000_000
TEXT = "Warsaw was founded around 1300 near the Vistula. Its university opened in 1816. It has many parks."


def passage(text: str, front: str = "") -> Passage:
    return Passage(text, tuple((unit.start, unit.end) for unit in cut_units(text, blocks_of_text(text))), front)


@pytest.fixture(scope="module")
def reader() -> SectionReader:
    return SectionReader()


def test_weights_match_the_model_card() -> None:
    weights = WEIGHTS.read_bytes()
    assert len(weights) < MOST_BYTES
    assert hashlib.sha256(weights).hexdigest() == SHA256
    card = (WEIGHTS.parent / "README.md").read_text("utf-8")
    assert SHA256 in card and f"{len(weights):,}" in card


def test_answering_unit_has_the_best_score(reader: SectionReader) -> None:
    read = reader.read([("In which year did the university of Warsaw open?", passage(TEXT, "Warsaw\n"))])[0]
    assert len(read.units) == 3
    assert max(range(3), key=lambda at: read.units[at]) == 1


def test_batch_gives_the_same_results_in_order(reader: SectionReader) -> None:
    asked = "When did the university of Warsaw open?"
    other = passage("Bees dance to tell each other where flowers are. " * 4)
    pairs = [(asked, passage(TEXT)), (asked, other), ("How do bees tell where flowers are?", other)]
    together = reader.read(pairs)
    assert together == [reader.read([pair])[0] for pair in pairs]
    assert together[0].answers > together[1].answers
    assert together[2].answers > together[1].answers
    assert reader.read([]) == []


def test_long_passage_is_read_completely(reader: SectionReader) -> None:
    filler = "The river is wide here and the boats are slow. " * 80
    whole = passage(filler + "The university opened in 1816.")
    read = reader.read([("When did the university open?", whole)])[0]
    assert len(read.units) == len(whole.units)
    assert UNREAD not in read.units
    assert max(range(len(read.units)), key=lambda at: read.units[at]) == len(read.units) - 1


def test_any_text_can_be_read(reader: SectionReader) -> None:
    odd = [("", Passage("", ())), ("why " * 400, passage("because " * 300)), ("half \ud83d", passage("\ud83d a pair"))]
    assert [len(read.units) for read in reader.read(odd)] == [0, 1, 1]


def test_damaged_weights_raise_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chapterverse.trained.section_reader.SHA256", "0" * 64)
    with pytest.raises(AgentUnavailable, match=r"section_reader\.onnx is damaged"):
        SectionReader().load()


def test_shared_reader_is_created_once() -> None:
    assert shared_reader() is shared_reader()
