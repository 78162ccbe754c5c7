"""Confidence: the rules of the specification, the calibration line, and how it is fitted."""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.book import Chunk, chunk_id_for, page_id_for, text_hash
from chapterverse.calibration import FALLBACK, Calibration, Vectors, assess, calibrate
from chapterverse.models import RetrievalRequest
from chapterverse.retrieval import retrieve
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines

EXAMPLES = Path(__file__).parent.parent / "examples"
IDENTITY = Calibration(answered=0.60, usual=0.85)  # relevance is the cosine itself
QUESTIONS = Path(__file__).parent.parent / "src" / "chapterverse" / "calibration_questions.txt"

cosines = st.floats(-1.0, 1.0)
lines = st.tuples(st.floats(0.0, 0.6), st.floats(0.05, 0.4)).map(lambda ends: Calibration(ends[0], ends[0] + ends[1]))


# ── the rules ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("average", "chunks", "top_k", "level"),
    [
        (0.85, 5, 5, "high"),
        (1.00, 20, 20, "high"),
        (0.8499, 5, 5, "medium"),
        (0.90, 4, 5, "medium"),
        (0.75, 3, 5, "medium"),
        (0.7499, 3, 5, "low"),
        (0.90, 2, 5, "low"),
        (0.60, 2, 5, "low"),
        (0.5999, 5, 5, "insufficient"),
        (1.00, 1, 5, "insufficient"),
        (0.90, 4, 4, "high"),
        (0.90, 1, 1, "high"),
        (0.80, 1, 1, "medium"),
        (0.60, 1, 1, "low"),
        (0.80, 2, 2, "medium"),
        (0.59, 1, 1, "insufficient"),
        (0.00, 0, 5, "insufficient"),
        (0.00, 0, 1, "insufficient"),
    ],
)
def test_confidence_level_follows_the_specification(average: float, chunks: int, top_k: int, level: str) -> None:
    metrics = assess([average] * chunks, None, IDENTITY, top_k)
    assert metrics.confidence_level == level
    assert metrics.should_answer == (level != "insufficient")
    assert metrics.num_chunks == chunks


def test_best_passage_counts_for_half_in_the_average() -> None:
    metrics = assess([1.0, 0.9, 0.8, 0.5, 0.3], None, IDENTITY, 5)
    assert (metrics.average_similarity, metrics.min_similarity, metrics.max_similarity) == (0.85, 0.3, 1.0)
    assert metrics.confidence_level == "high"


def test_one_relevant_passage_is_enough_to_answer() -> None:
    line = Calibration(answered=0.3, usual=0.5)
    assert assess([0.74, 0.18, 0.21, 0.11, 0.08], None, line, 5).should_answer
    assert not assess([0.30, 0.28, 0.26, 0.25, 0.24], None, line, 5).should_answer


@given(st.lists(cosines, max_size=20), lines, st.integers(1, 20))
def test_metrics_are_between_0_and_1_and_independent_of_order(
    similarities: list[float], line: Calibration, top_k: int
) -> None:
    metrics = assess(similarities, None, line, top_k)
    assert 0.0 <= metrics.min_similarity <= metrics.average_similarity <= metrics.max_similarity <= 1.0
    assert assess(similarities[::-1], None, line, top_k) == metrics
    assert assess(sorted(similarities), None, line, top_k) == metrics


@given(st.lists(cosines, min_size=1, max_size=20), lines, st.integers(1, 20), st.floats(0.0, 0.5))
def test_better_passages_never_lower_the_level(
    similarities: list[float], line: Calibration, top_k: int, gain: float
) -> None:
    levels = ["insufficient", "low", "medium", "high"]
    before = assess(similarities, None, line, top_k).confidence_level
    after = assess([similarity + gain for similarity in similarities], None, line, top_k).confidence_level
    assert levels.index(after) >= levels.index(before)


@pytest.mark.parametrize(
    ("vectors", "diversity"),
    [
        (None, 0.0),
        ([], 0.0),
        ([[1.0, 0.0]], 0.0),
        ([[1.0, 0.0], [1.0, 0.0]], 0.0),
        ([[1.0, 0.0], [0.0, 2.0]], 1.0),
        ([[1.0, 0.0], [-1.0, 0.0]], 1.0),
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], 0.6667),
        ([[0.0, 0.0], [1.0, 0.0]], 1.0),
    ],
)
def test_diversity_is_one_minus_the_mean_cosine_of_pairs(vectors: list[list[float]] | None, diversity: float) -> None:
    assert assess([0.9, 0.9], vectors, IDENTITY, 5).chunk_diversity == diversity


# ── the line ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(lines, cosines, cosines)
def test_relevance_is_monotonic_and_between_0_and_1(line: Calibration, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0.0 <= line.relevance(low) <= line.relevance(high) <= 1.0


@given(lines, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_relevance_distinguishes_good_passages(line: Calibration, one: float, other: float) -> None:
    """The straight line of the rules gives 1.0 for many of them."""
    low, high = sorted((one, other))
    if line.answered <= low < high - 1e-6:
        assert line.relevance(low) < line.relevance(high)


@given(lines, st.floats(0.01, 1.0))
def test_least_cosine_is_the_inverse_of_relevance(line: Calibration, relevance: float) -> None:
    cosine = line.least_cosine(relevance)
    assert line.relevance(cosine) == pytest.approx(relevance)
    assert line.relevance(cosine - 1e-3) < relevance


@given(lines)
def test_line_passes_through_its_two_points_and_survives_storage(line: Calibration) -> None:
    assert line.relevance(line.answered) == pytest.approx(0.60)
    assert line.relevance(line.usual) == pytest.approx(0.85)
    assert Calibration.from_dict(json.loads(json.dumps(line.to_dict()))) == line


@pytest.mark.parametrize(
    "stored", [{}, {"answered": 0.3}, {"answered": "x", "usual": 0.5}, {"answered": 0.5, "usual": 0.5}, {"knots": []}]
)
def test_invalid_calibration_names_the_command_that_makes_one(stored: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="chapterverse calibrate"):
        Calibration.from_dict(stored)


def test_assess_without_calibration_uses_the_fallback() -> None:
    assert assess([0.4] * 5, None, None, 5) == assess([0.4] * 5, None, FALLBACK, 5)


# ── fitting it ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def bag_of_words(text: str) -> Vectors:
    """A simple embedding: texts that share words are similar."""
    vector = np.full(256, 1e-3, np.float32)
    for word in re.findall(r"[a-z]{4,}", text.lower()):
        vector[hashlib.sha256(word.encode()).digest()[0]] += 1.0
    return vector / np.float32(np.linalg.norm(vector))


def chunk(number: int, text: str, heading: str) -> Chunk:
    page, content = page_id_for(f"page-{number}"), text_hash(text)
    return Chunk(
        chunk_id=chunk_id_for(page, content, number),
        page_id=page,
        page_url=f"page-{number}",
        source_url=f"page-{number}",
        page_title=heading,
        section_heading=heading,
        breadcrumb=heading,
        module="",
        chunk_index=0,
        start=0,
        end=len(text),
        text=text,
        content_hash=content,
    )


NOUNS = ["gripper", "encoder", "bearing", "gearbox", "chassis", "battery", "antenna", "turret", "winch", "magnet"]
VERBS = ["lifts", "turns", "guards", "drives", "heats", "cools", "feeds", "holds", "aligns", "senses"]
BOOK = [
    chunk(
        number,
        f"The {noun} quietly {verb} the heavy robot platform during every slow measured movement. "
        f"Whenever the {noun} stops, another spare {noun} {verb} the platform instead of it.",
        f"Why the {noun} {verb} platforms",
    )
    for number, (noun, verb) in enumerate(product(NOUNS, VERBS))
]


async def rows(chunks: Iterable[Chunk]) -> AsyncIterator[tuple[Chunk, Vectors]]:
    for one in chunks:
        yield one, await bag_of_words(one.passage)


async def test_calibrated_book_answers_its_topics_only() -> None:
    line = await calibrate(bag_of_words, rows(BOOK))
    book = np.stack([vector async for _, vector in rows(BOOK)])

    async def ask(question: str) -> bool:
        best = np.sort(book @ await bag_of_words(question))[::-1][:5]
        return assess(best.tolist(), None, line, 5).should_answer

    assert await ask("which gripper lifts the robot platform?")
    assert await ask("encoder that senses platform movement")
    assert not await ask("who wrote the music for this opera?")
    assert not await ask("best recipe with apples and cinnamon")


async def test_calibration_does_not_depend_on_the_order_of_chunks() -> None:
    assert await calibrate(bag_of_words, rows(BOOK)) == await calibrate(bag_of_words, rows(BOOK[::-1]))


async def test_sampled_calibration_does_not_depend_on_the_order_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chapterverse.calibration._SAMPLE", 30)
    line = await calibrate(bag_of_words, rows(BOOK))
    assert line == await calibrate(bag_of_words, rows(BOOK[::-1]))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
async def test_tiny_book_can_be_calibrated(size: int) -> None:
    line = await calibrate(bag_of_words, rows(BOOK[:size]))
    assert -1.0 < line.answered < line.usual < 1.5
    question = await bag_of_words("gripper lifts platform")
    similarities = [float(vector @ question) async for _, vector in rows(BOOK[:size])]
    assert assess(similarities, None, line, min(5, size)).should_answer


@pytest.mark.parametrize(
    "chunks", [[], [chunk(0, "1 | 2 | 3", "")], [chunk(0, "短い本です。とても短い本です。", "本")]]
)
async def test_book_without_usable_questions_gets_the_fallback(chunks: list[Chunk]) -> None:
    assert await calibrate(bag_of_words, rows(chunks)) == FALLBACK


def test_calibration_questions_are_many_and_unique() -> None:
    questions = QUESTIONS.read_text(encoding="utf-8").splitlines()
    assert len(questions) >= 100
    assert len(set(questions)) == len(questions)
    assert all(question.endswith("?") and question == question.strip() for question in questions)


# ── the example book, with the real model ────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_example_book_answers_its_questions_and_refuses_unrelated_ones(example_home: Path) -> None:
    refused = set()
    async with open_engines(Settings.load(chapterverse_home=example_home)) as engines:
        for row in map(json.loads, (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()):
            found = await retrieve(RetrievalRequest(query=row["question"]), engines.embedder, engines.index)
            assert found.confidence is not None
            if not found.confidence.should_answer:
                refused.add(row["id"])
    assert not [name for name in refused if name.startswith("q")]
    assert {"u18", "u19", "u20"} <= refused
