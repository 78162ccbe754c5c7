"""Searching and reading without a key, on the example book with the real section reader."""

from collections.abc import Sequence

import pytest

from chapterverse.answering.reading import CANDIDATES, STEPS, read_book, read_passages, read_selection
from chapterverse.conversations.turns import Turn
from chapterverse.models import RetrievalRequest
from chapterverse.services import Services
from chapterverse.trained import Passage, Read, SectionReader
from tests.chunks import chunk

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def test_at_most_top_k_passages_are_returned(keyless: Services) -> None:
    request = RetrievalRequest(query="How heavy is Tern?", top_k=2)
    read = await read_book(request, (), keyless, keyless.reader)
    assert len(read.found.results) == len(read.readings) == 2
    assert [chunk.rank for chunk in read.found.results] == [1, 2]
    assert read.readings[0].score >= read.readings[1].score
    assert set(read.readings[0].units) == {unit.start for unit in read.found.results[0].units}


async def test_units_highlighted_in_earlier_turns_are_marked_as_shown_before(keyless: Services) -> None:
    request = RetrievalRequest(query="And how fast is it?")
    first = await read_book(RetrievalRequest(query="How heavy is Tern?"), (), keyless, keyless.reader)
    best = first.found.results[0]
    unit = best.units[0]
    source = {
        "source_url": best.source_url,
        "page_id": best.page_id,
        "highlights": [{"start": unit.start, "end": unit.end}],
    }
    turn = Turn(session_id="", query="How heavy is Tern?", response="…", sources=(source,), evidence=(best.chunk_id,))
    read = await read_book(request, [turn], keyless, keyless.reader)
    at = [found.chunk_id for found in read.found.results].index(best.chunk_id)
    assert read.readings[at].shown_before == {unit.start}


async def test_long_selection_is_read_to_its_end(keyless: Services) -> None:
    text = "Filler words stand here. " * 200 + "The winch lifts 12 kg."
    reading = (await read_selection("How much does the winch lift?", text, keyless.reader)).readings[0]
    assert max(reading.units, key=lambda start: reading.units[start]) == text.index("The winch")


class CountingReader(SectionReader):
    """Gives every passage the same logit and counts what it reads."""

    def __init__(self, logit: float) -> None:
        super().__init__()
        self.logit, self.passages = logit, 0

    def read(self, pairs: Sequence[tuple[str, Passage]]) -> list[Read]:
        self.passages += len(pairs)
        return [Read(self.logit, (self.logit,) * len(passage.units)) for _, passage in pairs]


@pytest.mark.parametrize(("logit", "passages"), [(4.0, STEPS[1]), (-4.0, CANDIDATES)])
async def test_reading_stops_after_a_passage_with_a_high_score(keyless: Services, logit: float, passages: int) -> None:
    request = RetrievalRequest(query="How heavy is Tern?", top_k=CANDIDATES)
    reader = CountingReader(logit)
    read = await read_book(request, (), keyless, reader)
    assert reader.passages == passages
    assert len(read.found.results) == CANDIDATES
    assert [bool(reading.units) for reading in read.readings] == [True] * passages + [False] * (CANDIDATES - passages)


class RecordingReader(CountingReader):
    """Records what stands before the text of each passage."""

    def __init__(self) -> None:
        super().__init__(4.0)
        self.fronts: list[str] = []

    def read(self, pairs: Sequence[tuple[str, Passage]]) -> list[Read]:
        self.fronts += [passage.front for _, passage in pairs]
        return super().read(pairs)


async def test_passage_is_read_with_its_place_without_the_chapters() -> None:
    reader = RecordingReader()
    found = chunk("Tern weighs 3 kg.", "Tern › Weight").model_copy(update={"breadcrumb": "Robots › Tern › Weight"})
    await read_passages("How heavy is Tern?", (), [found], reader)
    assert reader.fronts == ["Tern › Weight\n"]


class NameReader(SectionReader):
    """Gives a high logit to a passage for "What is X?" if it contains X, and a low one for everything else."""

    def read(self, pairs: Sequence[tuple[str, Passage]]) -> list[Read]:
        return [Read(self._logit(question, passage), (0.0,) * len(passage.units)) for question, passage in pairs]

    def _logit(self, question: str, passage: Passage) -> float:
        name = question.removeprefix("What is ").removesuffix("?")
        return 2.0 + passage.text.count(name) if name != question and name in passage.text else -5.0


@pytest.mark.parametrize(
    "question", ["compare Gazebo and Unity", "Gazebo vs Unity?", "What is the difference between Gazebo and Unity?"]
)
async def test_comparison_without_a_comparing_passage_reads_both_subjects(keyless: Services, question: str) -> None:
    read = await read_book(RetrievalRequest(query=question), (), keyless, NameReader())
    assert ["Gazebo" in read.found.results[0].chunk_text, "Unity" in read.found.results[1].chunk_text] == [True, True]
    assert len(read.found.results) == 2
    assert read.readings[0].score == read.readings[1].score > 2.0


async def test_comparison_keeps_to_top_k(keyless: Services) -> None:
    read = await read_book(RetrievalRequest(query="compare Gazebo and Unity", top_k=1), (), keyless, NameReader())
    assert len(read.found.results) == len(read.readings) == 1


@pytest.mark.parametrize("question", ["compare Gazebo and Zarquon", "Zarquon vs Unity", "What is Gazebo?"])
async def test_comparison_needs_both_subjects(keyless: Services, question: str) -> None:
    read = await read_book(RetrievalRequest(query=question), (), keyless, NameReader())
    assert len(read.found.results) != 2
