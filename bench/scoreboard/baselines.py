"""Two simple systems on the same chunks and the same questions, for comparison with ours.

A: BM25, the first sentences of the best passage. B: dense search, the nearest passage as a whole. Both get a follow-up
in the standalone form that our rules made. For a selection, A quotes its best sentences and B the whole text. Neither
refuses. Their scores are saved, so that thresholds can be tried afterwards.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.memory import MemoryIndex, Vectors, WordIndex
from bench.retrieval.vectors import VectorCache
from chapterverse.book import Chunk
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.evaluation.cases import Case, Citation, FoundPassage
from chapterverse.evaluation.questions import Question
from chapterverse.ingestion.chunking import cut
from chapterverse.language import sentences
from chapterverse.services import Services

SENTENCES: Final = 3  # sentences that A quotes, as many as our usual answer has
_DEPTH: Final = 5  # passages, as in an ordinary search


@dataclass(frozen=True, slots=True)
class Baselines:
    """Both systems over one book."""

    index: MemoryIndex
    services: Services

    @classmethod
    async def over(cls, services: Services, vectors: VectorCache) -> "Baselines":
        """Build them over the book of the services, in the same chunks."""
        listed = await services.index.pages()
        pages = [page for one in listed if (page := await services.index.page(one.page_id))]
        chunks = [chunk for page in pages for chunk in cut(page, count_tokens, services.embedder.window)]
        return cls(MemoryIndex(chunks, await vectors.passages([chunk.passage for chunk in chunks])), services)

    async def by_words(self, question: Question, asked: str) -> Case:
        """Answer as A."""
        started = time.perf_counter()
        if question.selection is not None:
            texts = _sentences(question.selection)
            scores = WordIndex(texts).scores(asked)
            best = sorted(_best(scores)[:SENTENCES])
            quotes = [texts[number] for number in best]
            return _case(question, [], quotes, float(scores.max(initial=0.0)), started)
        scores = self.index.words.scores(asked)
        found = self._found(scores)
        quotes = _sentences(_prose(found[0][0]))[:SENTENCES]
        return _case(question, found, quotes, found[0][1], started)

    async def by_meaning(self, question: Question, asked: str) -> Case:
        """Answer as B."""
        started = time.perf_counter()
        vector = await self.services.embedder.embed_query(asked)
        if question.selection is not None:
            whole = await self.services.embedder.embed_passages([question.selection])
            return _case(question, [], [question.selection], float((whole @ vector)[0]), started)
        found = self._found(self.index.vectors @ vector)
        return _case(question, found, [_prose(found[0][0])], found[0][1], started)

    def _found(self, scores: Vectors) -> list[tuple[Chunk, float]]:
        return [(self.index.chunks[number], float(scores[number])) for number in _best(scores)[:_DEPTH]]


def _best(scores: Vectors) -> list[int]:
    return [int(number) for number in np.argsort(-scores, kind="stable")]


def _sentences(text: str) -> list[str]:
    return [" ".join(text[start:end].split()) for start, end in sentences(text)] or [text]


def _prose(chunk: Chunk) -> str:
    """The passage without its headings, which answer nothing."""
    lines = chunk.text.split("\n")
    while len(lines) > 1 and (lines[0].startswith("#") or not lines[0].strip()):
        del lines[0]
    return "\n".join(lines)


def _case(
    question: Question, found: Sequence[tuple[Chunk, float]], quotes: Sequence[str], score: float, started: float
) -> Case:
    chunk = found[0][0] if found else None
    passages = tuple(
        FoundPassage(
            source_url=one.source_url,
            page_title=one.page_title,
            section_heading=one.section_heading,
            text=one.text,
            similarity=similarity,
        )
        for one, similarity in found
    )
    return Case(
        question=question,
        searched=question.question,
        passages=passages,
        status="answered",
        answer=" ".join(quotes),
        citations=tuple(
            Citation(
                source_url=chunk.source_url if chunk else "",
                page_title=chunk.page_title if chunk else "",
                section_heading=chunk.section_heading if chunk else "",
                quote=quote,
            )
            for quote in quotes
        ),
        confidence=score,
        level="low",
        latency_ms=(time.perf_counter() - started) * 1000,
    )
