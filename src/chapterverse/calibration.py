"""Decides from the similarity of passages whether a question can be answered.

Maps cosine to relevance, fits this map to a book, and decides by relevance. Independent of the embedding model and the
index.

There is one scale. Two points define it: 0.60, the least relevance that is answered, is the boundary between related
and unrelated questions; 0.85 is the usual value of questions about this book. It is a straight line through both, and
above 0.85 a flatter one that reaches 1.0 at a cosine of 1, so that good passages still differ.

Often only one passage of a book answers a question, and the others found with it do not. So the best passage counts for
half in the average that the rules use.
"""

import asyncio
import hashlib
import heapq
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from chapterverse.book import Chunk
from chapterverse.language import sentences
from chapterverse.models import ConfidenceLevel, ConfidenceMetrics

Vectors = NDArray[np.float32]
EmbedQuery = Callable[[str], Awaitable[Vectors]]

# SPEC 5: level, minimum of the average relevance, minimum number of passages.
RULES: Final[tuple[tuple[ConfidenceLevel, float, int], ...]] = (
    ("high", 0.85, 5),
    ("medium", 0.75, 3),
    ("low", 0.60, 2),
)
_ANSWERED: Final = 0.60
_USUAL: Final = 0.85

_SAMPLE: Final = 20_000  # chunks that questions are compared with
_SOURCES: Final = 2_000  # chunks among them that questions are made from
_HEADINGS: Final = 32  # questions made from headings
_SKETCHES: Final = 32  # questions made from sentences
_FOUND: Final = 5  # passages of an ordinary search
_BEST: Final = 0.5  # weight of the best passage in the average
_NOISE: Final = 0.80  # share of the unrelated questions below the boundary, about
_AT_ONCE: Final = 4  # questions that are embedded concurrently
_NARROWEST: Final = 0.05  # minimum distance in cosine between the two points of the line

_UNRELATED = Path(__file__).with_name("calibration_questions.txt")
_WORD = re.compile(r"[^\W\d_]\w{3,}")  # long enough to mean something
_SENTENCE_WORDS: Final = (8, 40)
_LEAST_SKETCH: Final = 3  # words


@dataclass(frozen=True, slots=True)
class Calibration:
    """The line from cosine to relevance for one book and one embedding model."""

    answered: float  # the cosine with a relevance of 0.60
    usual: float  # the cosine with a relevance of 0.85

    def relevance(self, cosine: float) -> float:
        """The relevance of a passage with this cosine, 0 to 1."""
        if cosine > self.usual:
            return min(1.0, _USUAL + (1.0 - _USUAL) * (cosine - self.usual) / self._rest)
        slope = (_USUAL - _ANSWERED) / (self.usual - self.answered)
        return max(0.0, _ANSWERED + slope * (cosine - self.answered))

    def least_cosine(self, relevance: float) -> float:
        """The smallest cosine with this relevance."""
        if relevance > _USUAL:
            return self.usual + self._rest * (relevance - _USUAL) / (1.0 - _USUAL)
        slope = (_USUAL - _ANSWERED) / (self.usual - self.answered)
        return self.answered + (relevance - _ANSWERED) / slope

    @property
    def _rest(self) -> float:
        """The distance from the usual cosine to 1."""
        return max(1.0 - self.usual, _NARROWEST)

    def to_dict(self) -> dict[str, float]:
        """The values as they are stored in the index."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`. Raise `ValueError` for anything else."""
        try:
            line = cls(float(stored["answered"]), float(stored["usual"]))
        except (KeyError, TypeError, ValueError):
            raise ValueError("not a calibration; make it again with: chapterverse calibrate") from None
        if not line.answered < line.usual:
            raise ValueError("not a rising calibration; make it again with: chapterverse calibrate")
        return line


# For an index without a calibration: the mean of five books with the local MiniLM (bench/calibration.py).
FALLBACK: Final = Calibration(answered=0.30, usual=0.52)


def assess(
    similarities: Sequence[float],
    vectors: Sequence[Sequence[float]] | None,
    calibration: Calibration | None,
    top_k: int,
) -> ConfidenceMetrics:
    """Decide for the passages found.

    `top_k`: how many were requested, at most as many as the book has, so that a book of one chunk can be asked."""
    relevances = _relevances(similarities, calibration)
    counted = _with_best(relevances)
    average = round(fmean(counted), 4) if counted else 0.0  # rounded as it is shown, so that number and level agree
    level = _level(average, len(relevances), top_k)
    return ConfidenceMetrics(
        average_similarity=average,
        min_similarity=round(min(relevances, default=0.0), 4),
        max_similarity=round(max(relevances, default=0.0), 4),
        num_chunks=len(relevances),
        chunk_diversity=round(_diversity(vectors or ()), 4),
        confidence_level=level,
        should_answer=level != "insufficient",
    )


def near(similarities: Sequence[float], calibration: Calibration | None) -> list[bool]:
    """Which passages are near enough to be shown without a word of the question. The bar is the medium level: one in
    five unrelated questions reaches the lowest."""
    least = next(least for level, least, _ in RULES if level == "medium")
    return [relevance >= least for relevance in _with_best(_relevances(similarities, calibration))]


def _relevances(similarities: Sequence[float], calibration: Calibration | None) -> list[float]:
    return [(calibration or FALLBACK).relevance(similarity) for similarity in similarities]


def _with_best(relevances: Sequence[float]) -> list[float]:
    best = max(relevances, default=0.0)
    return [_BEST * best + (1 - _BEST) * relevance for relevance in relevances]


def _level(average: float, chunks: int, top_k: int) -> ConfidenceLevel:
    for level, least, count in RULES:
        if average >= least and chunks >= max(1, min(count, top_k)):
            return level
    return "insufficient"


def _diversity(vectors: Sequence[Sequence[float]]) -> float:
    if len(vectors) < 2:
        return 0.0
    rows = np.asarray(vectors, np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    count = len(rows)
    cosine = (float((rows @ rows.T).sum()) - count) / (count * (count - 1))  # the mean of all pairs
    return min(1.0, max(0.0, 1.0 - cosine))


# ── fitting the line to a book ───────────────────────────────────────────────────────────────────────────────────────


async def calibrate(embed_query: EmbedQuery, chunks: AsyncIterator[tuple[Chunk, Vectors]]) -> Calibration:
    """Fit the line to a book, from its own headings and sentences and from questions that are not about it.

    The same book always gives the same line, regardless of the order of its chunks."""
    sampled = await _sample(chunks)
    related = list(_related([chunk for chunk, _ in sampled[:_SOURCES]]))
    if not related:
        return FALLBACK
    book = np.stack([vector for _, vector in sampled])
    unrelated = _UNRELATED.read_text(encoding="utf-8").splitlines()
    vectors = await _embed(embed_query, [*related, *unrelated])
    averages = _averages(vectors @ book.T)
    return _fit(averages[: len(related)], averages[len(related) :])


def _fit(related: NDArray[np.float32], unrelated: NDArray[np.float32]) -> Calibration:
    """Uses quantiles, because some questions made from a book make no sense, and a few of the unrelated ones may be
    about the topic of the book."""
    noise = float(np.quantile(unrelated, _NOISE))
    faint, usual = (float(value) for value in np.quantile(related, (0.10, 0.50)))
    answered = (noise + max(noise, faint)) / 2
    return Calibration(round(answered, 4), round(max(usual, answered + _NARROWEST), 4))


async def _sample(chunks: AsyncIterator[tuple[Chunk, Vectors]]) -> list[tuple[Chunk, Vectors]]:
    """At most `_SAMPLE` chunks, chosen and ordered by the hash of their text."""
    heap: list[tuple[int, str, Chunk, Vectors]] = []
    async for chunk, vector in chunks:
        rank = -int.from_bytes(hashlib.sha256(chunk.content_hash.encode()).digest()[:8])
        entry = (rank, chunk.chunk_id, chunk, np.asarray(vector, np.float32))
        if len(heap) < _SAMPLE:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    return [(chunk, vector) for _, _, chunk, vector in sorted(heap, key=lambda entry: (-entry[0], entry[1]))]


def _related(chunks: Sequence[Chunk]) -> Iterator[str]:
    """Questions that the book answers: its headings, and sentences with half of their words."""
    headings = dict.fromkeys(chunk.section_heading or chunk.page_title for chunk in chunks)
    yield from [heading for heading in headings if len(_WORD.findall(heading)) > 1][:_HEADINGS]
    found = {sketch for chunk in chunks for sketch in _sketches(chunk)}
    yield from sorted(found, key=_shuffle)[:_SKETCHES]


def _sketches(chunk: Chunk) -> Iterator[str]:
    for start, end in sentences(chunk.text):
        sentence = chunk.text[start:end]
        least, most = _SENTENCE_WORDS
        if sentence[0].isupper() and least <= len(sentence.split()) <= most:
            words = list(dict.fromkeys(_WORD.findall(sentence)))
            kept = set(sorted(words, key=_shuffle)[: max(_LEAST_SKETCH, len(words) // 2)])
            if len(kept) >= _LEAST_SKETCH:
                yield " ".join(word for word in words if word in kept)


def _shuffle(text: str) -> bytes:
    """A sort key that is deterministic and unrelated to the text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


async def _embed(embed_query: EmbedQuery, questions: Sequence[str]) -> Vectors:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def embed(question: str) -> Vectors:
        async with turns:
            return await embed_query(question)

    return np.stack(await asyncio.gather(*(embed(question) for question in questions)))


def _averages(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """For each row the average that the rules use: of the best `_FOUND` cosines and the best one."""
    count = min(_FOUND, cosines.shape[1])
    found = -np.partition(-cosines, count - 1, axis=1)[:, :count]
    averages: NDArray[np.float32] = _BEST * found.max(axis=1) + (1 - _BEST) * found.mean(axis=1)
    return averages
