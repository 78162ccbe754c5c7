"""Search and read without a key, on the example book with the real reader."""

from collections.abc import Sequence

import pytest

from chapterverse.answering.reading import CANDIDATES, STEPS, read_book, read_selection
from chapterverse.conversations.turns import Turn
from chapterverse.models import RetrievalRequest
from chapterverse.services import Services
from chapterverse.trained import Passage, Read, SectionReader

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def test_no_more_passages_come_back_than_were_asked_for(keyless: Services) -> None:
    request = RetrievalRequest(query="How heavy is Tern?", top_k=2)
    read = await read_book(request.query, (), request, keyless, keyless.reader)
    assert len(read.found.results) == len(read.readings) == 2
    assert [chunk.rank for chunk in read.found.results] == [1, 2]
    assert read.readings[0].score >= read.readings[1].score
    assert set(read.readings[0].units) == {unit.start for unit in read.found.results[0].units}


async def test_what_was_marked_before_counts_less(keyless: Services) -> None:
    request = RetrievalRequest(query="And how fast is it?")
    first = await read_book(
        "How heavy is Tern?", (), RetrievalRequest(query="How heavy is Tern?"), keyless, keyless.reader
    )
    chunk = first.found.results[0]
    unit = chunk.units[0]
    source = {
        "source_url": chunk.source_url,
        "page_id": chunk.page_id,
        "highlights": [{"start": unit.start, "end": unit.end}],
    }
    turn = Turn(session_id="", query="How heavy is Tern?", response="…", sources=(source,), evidence=(chunk.chunk_id,))
    read = await read_book(request.query, [turn], request, keyless, keyless.reader)
    at = [found.chunk_id for found in read.found.results].index(chunk.chunk_id)
    assert read.readings[at].told == {unit.start}


async def test_a_selection_is_read_whole(keyless: Services) -> None:
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
async def test_passages_that_cannot_win_any_more_are_not_read(keyless: Services, logit: float, passages: int) -> None:
    request = RetrievalRequest(query="How heavy is Tern?", top_k=CANDIDATES)
    reader = CountingReader(logit)
    read = await read_book(request.query, (), request, keyless, reader)
    assert reader.passages == passages
    assert len(read.found.results) == CANDIDATES
    assert [bool(reading.units) for reading in read.readings] == [True] * passages + [False] * (CANDIDATES - passages)


class Names(SectionReader):
    """Says that a passage answers "What is X?" if it has X, and that none compares anything."""

    def read(self, pairs: Sequence[tuple[str, Passage]]) -> list[Read]:
        return [Read(self._logit(question, passage), (0.0,) * len(passage.units)) for question, passage in pairs]

    def _logit(self, question: str, passage: Passage) -> float:
        name = question.removeprefix("What is ").removesuffix("?")
        return 2.0 + passage.text.count(name) if name != question and name in passage.text else -5.0


@pytest.mark.parametrize(
    "question", ["compare Gazebo and Unity", "Gazebo vs Unity?", "What is the difference between Gazebo and Unity?"]
)
async def test_what_the_book_does_not_compare_is_looked_up_one_by_one(keyless: Services, question: str) -> None:
    read = await read_book(question, (), RetrievalRequest(query=question), keyless, Names())
    assert ["Gazebo" in read.found.results[0].chunk_text, "Unity" in read.found.results[1].chunk_text] == [True, True]
    assert len(read.found.results) == 2
    assert read.readings[0].score == read.readings[1].score > 2.0


@pytest.mark.parametrize("question", ["compare Gazebo and Zarquon", "Zarquon vs Unity", "What is Gazebo?"])
async def test_one_side_is_no_comparison(keyless: Services, question: str) -> None:
    read = await read_book(question, (), RetrievalRequest(query=question), keyless, Names())
    assert len(read.found.results) != 2
