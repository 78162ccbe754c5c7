"""How much of what a follow-up leaves out do the rules bring back, measured by what is then found?

Owns the run: the last turn alone, with ours, with the turns before put in front of it, and (MTRAG) as a person rewrote
it. Searches in memory with the product's vectors, word weights and fusion. Prints a table; writes nothing.

    python -m bench.followups [doc2dial] [clapnq] [cloud]
"""

import asyncio
import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.retrieval import metrics
from bench.retrieval.sets import DATA, Corpus, DataMissing, corpora
from bench.retrieval.vectors import VectorCache
from chapterverse.book import Chunk
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.followups import standalone
from chapterverse.index import fusion, sparse
from chapterverse.ingestion.chunking import cut

_CACHE: Final = Path(__file__).resolve().parents[1] / ".cache" / "bench" / "vectors.sqlite"
_LIMIT: Final = 25  # chunks asked for, as in bench.retrieval
_BEFORE: Final = 2  # user turns of the plain concatenation, as in bench.retrieval


@dataclass(frozen=True, slots=True)
class Said:
    """An earlier turn."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Task:
    """A turn with what was said before it."""

    question: str
    history: tuple[Said, ...]


class Searcher:
    """A corpus in memory, searched as the index searches it."""

    def __init__(self, chunks: Sequence[Chunk], owners: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._owners, self._vectors = owners, vectors
        self._weights = sparse.WordWeights(sparse.DEFAULTS)
        postings: dict[int, list[tuple[int, float]]] = {}
        for number, chunk in enumerate(chunks):
            if weights := self._weights.document(chunk.passage):
                for word, value in zip(weights.indices, weights.values, strict=True):
                    postings.setdefault(word, []).append((number, value))
        self._postings = {word: self._scored(rows, len(chunks)) for word, rows in postings.items()}

    def ranked(self, text: str, vector: NDArray[np.float32]) -> list[str]:
        """Ids of documents, best first."""
        depth = fusion.depth(_LIMIT)
        cosines, words = self._vectors @ vector, self._words(text)
        dense, found = _top(cosines, depth), [n for n in _top(words, depth) if words[n] > 0]
        branches = fusion.Branches(
            dense={str(n): float(cosines[n]) for n in dense},
            sparse={str(n): float(words[n]) for n in found},
            cosines={str(n): float(cosines[n]) for n in found},
        )
        hits = fusion.fuse(branches, fusion.DENSE_WEIGHT, depth)[:_LIMIT]
        return list(dict.fromkeys(self._owners[int(hit.id)] for hit in hits))

    def _words(self, text: str) -> NDArray[np.float32]:
        scores = np.zeros(len(self._owners), np.float32)
        if weights := self._weights.question(text):
            for word in weights.indices:
                if word in self._postings:
                    numbers, values = self._postings[word]
                    scores[numbers] += values
        return scores

    @staticmethod
    def _scored(rows: list[tuple[int, float]], total: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        rarity = np.log((total - len(rows) + 0.5) / (len(rows) + 0.5) + 1)  # as the engine's IDF
        numbers, values = zip(*rows, strict=True)
        return np.array(numbers, np.int64), np.array(values, np.float32) * np.float32(rarity)


def _top(scores: NDArray[np.float32], depth: int) -> list[int]:
    best = np.argpartition(-scores, min(depth, len(scores)) - 1)[:depth]
    return [int(number) for number in best]


async def searcher(corpus: Corpus, vectors: VectorCache, budget: int) -> Searcher:
    """The corpus cut and embedded by the product."""
    chunks: list[Chunk] = []
    owners: list[str] = []
    for name, pages in corpus.documents.items():
        for page in pages:
            own = cut(page, count_tokens, budget)
            chunks += own
            owners += [name] * len(own)
    return Searcher(chunks, owners, await vectors.passages([chunk.passage for chunk in chunks]))


def tasks(corpus: str) -> dict[str, Task]:
    """The turns of a corpus by id."""
    path = DATA / ("doc2dial/turns_a.jsonl.gz" if corpus == "doc2dial" else "mtrag/tasks.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(map(json.loads, file))
    return {row.get("task_id") or row["id"]: Task(row["question"], _history(row["history"])) for row in rows}


def _history(messages: Sequence[Mapping[str, Any]]) -> tuple[Said, ...]:
    turns: list[Said] = []
    for message in messages:
        if message["speaker"] == "user":
            turns.append(Said(message["text"], ""))
        elif turns:
            turns[-1] = Said(turns[-1].question, f"{turns[-1].answer} {message['text']}".strip())
    return tuple(turns)


def _concatenated(task: Task) -> str:
    return "\n".join([*(turn.question for turn in task.history[-_BEFORE:]), task.question])


def _ours(task: Task) -> str:
    return standalone(task.question, task.history).question


def _ours_without_answers(task: Task) -> str:
    return standalone(task.question, [Said(turn.question, "") for turn in task.history]).question


_WAYS: Final[Mapping[str, Callable[[Task], str]]] = {
    "last turn alone": lambda task: task.question,
    f"after {_BEFORE} turns of the user": _concatenated,
    "ours, answers unseen": _ours_without_answers,
    "ours": _ours,
}


async def measure(corpus: Corpus, vectors: VectorCache, budget: int) -> None:
    """Print one line per way of asking."""
    found = await searcher(corpus, vectors, budget)
    asked, said = corpus.sets[0], tasks(corpus.name)
    score = metrics.ndcg if asked.measure == "nDCG" else metrics.hit
    ways = {name: {key: way(said[key]) for key in asked.questions} for name, way in _WAYS.items()}
    if corpus.name != "doc2dial":
        ways["a person's rewrite"] = dict(corpus.sets[1].questions)
    changed = sum(standalone(said[key].question, said[key].history).is_followup for key in asked.questions)
    print(f"{corpus.name} {asked.measure}@{asked.depth}, {len(asked.questions)} turns, {changed} seen as follow-ups")
    means: dict[str, float] = {}
    for name, texts in ways.items():
        values = [
            score(found.ranked(text, await vectors.query(text)), asked.relevant[key], asked.depth)
            for key, text in texts.items()
        ]
        means[name] = fmean(values)
        low, high = metrics.interval(values)
        print(f"  {name:<28}{means[name]:.4f}  ({low:.3f} to {high:.3f})", flush=True)
    if "a person's rewrite" in means:
        alone = means["last turn alone"]
        share = (means["ours"] - alone) / (means["a person's rewrite"] - alone)
        print(f"  share of the distance to the rewrite that ours closes: {share:.0%}")


async def bench(names: Sequence[str]) -> None:
    """Measure the named corpora, or all three."""
    embedder = LocalEmbedder()
    try:
        with VectorCache(_CACHE, embedder) as vectors:
            for corpus in corpora(names or ("doc2dial", "clapnq", "cloud")):
                await measure(corpus, vectors, embedder.window)
    finally:
        await embedder.close()


if __name__ == "__main__":
    try:
        asyncio.run(bench(sys.argv[1:]))
    except DataMissing as missing:
        sys.exit(str(missing))
