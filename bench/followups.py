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

from bench.memory import MemoryIndex
from bench.retrieval.sets import DATA, Corpus, DataMissing, corpora
from bench.retrieval.vectors import VectorCache
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.evaluation.ranking import hit, ndcg
from chapterverse.evaluation.statistics import interval
from chapterverse.followups import standalone
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


async def indexed(corpus: Corpus, vectors: VectorCache, budget: int) -> MemoryIndex:
    """The corpus cut and embedded by the product."""
    pages = [page for pages in corpus.documents.values() for page in pages]
    chunks = [chunk for page in pages for chunk in cut(page, count_tokens, budget)]
    return MemoryIndex(chunks, await vectors.passages([chunk.passage for chunk in chunks]))


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
    index = await indexed(corpus, vectors, budget)
    owners = {page.page_id: name for name, pages in corpus.documents.items() for page in pages}
    asked, said = corpus.sets[0], tasks(corpus.name)
    score = ndcg if asked.measure == "nDCG" else hit
    ways = {name: {key: way(said[key]) for key in asked.questions} for name, way in _WAYS.items()}
    if corpus.name != "doc2dial":
        ways["a person's rewrite"] = dict(corpus.sets[1].questions)
    changed = sum(standalone(said[key].question, said[key].history).is_followup for key in asked.questions)
    print(f"{corpus.name} {asked.measure}@{asked.depth}, {len(asked.questions)} turns, {changed} seen as follow-ups")
    means: dict[str, float] = {}
    for name, texts in ways.items():
        values: list[float] = []
        for key, text in texts.items():
            hits = index.search(text, await vectors.query(text), _LIMIT)
            ranked = list(dict.fromkeys(owners[chunk.page_id] for chunk, _ in hits))
            values.append(score(ranked, asked.relevant[key], asked.depth))
        means[name] = fmean(values)
        low, high = interval(values)
        print(f"  {name:<28}{means[name]:.4f}  ({low:.3f} to {high:.3f})", flush=True)
    alone, rewritten = means["last turn alone"], means.get("a person's rewrite", 0.0)
    if rewritten > alone:
        share = (means["ours"] - alone) / (rewritten - alone)
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
