"""Contradictions of an answer are found by numbers without a judge, and by verdicts with one."""

from collections.abc import AsyncGenerator

import pytest

from chapterverse.errors import AgentUnavailable
from chapterverse.evaluation.cases import Case, Citation, FoundPassage, MarkedStretch
from chapterverse.evaluation.contradictions import conflicts_of, other_numbers
from chapterverse.evidence import judge as judging
from tests.evaluation.cases import answered, question, refused

ASKED = "Which port does the server listen on?"
SAID = "The server listens on port 9090."


@pytest.mark.parametrize(
    ("two", "contradicts"),
    [
        ("By default the server listens on port 8080.", True),
        ("The server listens on port 9090, as ever.", False),
        ("The metrics exporter listens on port 9100.", False),
        ("The server listens on a port.", False),
        ("The server keeps 30 connections open for each client.", False),
    ],
)
def test_same_subject_with_another_number_is_a_contradiction(two: str, contradicts: bool) -> None:
    assert other_numbers(ASKED, SAID, two) is contradicts
    assert other_numbers(ASKED, two, SAID) is contradicts


@pytest.mark.parametrize(("one", "two"), [("1,000", "1000"), ("5.0", "5")])
def test_number_that_is_written_in_another_way_is_no_contradiction(one: str, two: str) -> None:
    said = "The server accepts {} requests for each client."
    assert not other_numbers("How many requests?", said.format(one), said.format(two))


def test_number_of_the_question_is_no_contradiction() -> None:
    assert not other_numbers(
        "What changed in version 2?", "Version 2 of the index is new.", "Version 3 of the index is new."
    )


def case(other: str, url: str = "https://book.example/b.md#b") -> Case:
    citation = Citation(
        source_url="https://book.example/a.md#a",
        page_title="A",
        section_heading="Server",
        quote=f"Read this. {SAID}",
        page_id="a",
        marks=(MarkedStretch(start=11, end=11 + len(SAID), text=SAID),),
    )
    passage = FoundPassage(source_url=url, page_title="B", section_heading="Server", text=other, similarity=0.8)
    return answered(question(question=ASKED, sentence=(), answer=()), citations=(citation,), passages=(passage,))


async def test_contradicting_section_is_found_without_a_judge() -> None:
    (found,) = await conflicts_of(case("Start it first. The server listens on port 8080. Then go."), None)
    assert found.said.text == SAID
    assert (found.otherwise.text, found.otherwise.page_title) == ("The server listens on port 8080.", "B")


async def test_other_version_is_no_contradiction_but_another_book_is() -> None:
    asked = case("The server listens on port 8080.", "https://book.example/a.md#a")
    (cited,), (found,) = asked.citations, asked.passages

    def of(book: str, version: str) -> Case:
        old = cited.model_copy(update={"book": "guide", "version": "1.0"})
        other = found.model_copy(update={"book": book, "version": version})
        return asked.model_copy(update={"citations": (old,), "passages": (other,)})

    assert await conflicts_of(of("guide", "2.0"), None) == ()
    (conflict,) = await conflicts_of(of("handbook", ""), None)
    assert (conflict.said.place, conflict.otherwise.place) == ("guide 1.0 › A › Server", "handbook › B › Server")


async def test_same_section_and_refusal_are_no_contradiction() -> None:
    assert await conflicts_of(case("The server listens on port 8080.", "https://book.example/a.md#a"), None) == ()
    assert await conflicts_of(refused(), None) == ()


class Judge:
    """Gives every claim the same verdict, or fails if `supported` is None."""

    name = "judge"

    def __init__(self, supported: bool | None) -> None:
        self.supported = supported
        self.asked: list[judging.JudgeRequest] = []

    async def verdicts(
        self, case: judging.JudgeRequest, usage: judging.JudgeUsage
    ) -> AsyncGenerator[judging.Verdict, None]:
        self.asked.append(case)
        if self.supported is None:
            raise AgentUnavailable("away")
        for number in range(1, len(case.claims) + 1):
            yield judging.Verdict(number, self.supported)

    async def close(self) -> None: ...


async def test_judge_finds_contradictions_without_numbers() -> None:
    given = case("The server listens on no port at all.")
    judge = Judge(True)
    (found,) = await conflicts_of(given, judge)
    assert found.otherwise.text == "The server listens on no port at all."
    message = judge.asked[0].message()
    assert SAID in message and found.otherwise.text in message and ASKED in message
    assert await conflicts_of(case("The server listens on port 8080."), Judge(False)) == ()


async def test_numbers_decide_if_the_judge_fails() -> None:
    assert await conflicts_of(case("The server listens on port 8080."), Judge(None))
    assert not await conflicts_of(case("The server listens on no port at all."), Judge(None))
