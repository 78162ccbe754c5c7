"""How much of what a follow-up leaves out do the rules bring back, measured by what is then found?

Owns the run: the last turn alone, with ours, with the turns before put in front of it, and (MTRAG) as a person rewrote
it. Searches in memory with the product's vectors, word weights and fusion. Prints a table; a run over all corpora is
written to `bench/results/followups-COMMIT.json`.

    python -m bench.followups [doc2dial] [clapnq] [cloud]
"""

import asyncio
import gzip
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from bench.memory import MemoryIndex
from bench.results import save
from bench.retrieval.sets import DATA, Corpus, DataMissing, corpora
from bench.retrieval.vectors import VectorCache
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.evaluation.ranking import hit, ndcg
from chapterverse.evaluation.statistics import Rows, closed_distance, interval, statistic_interval
from chapterverse.followups import standalone
from chapterverse.ingestion.chunking import cut

_CACHE: Final = Path(__file__).resolve().parents[1] / ".cache" / "bench" / "vectors.sqlite"
_LIMIT: Final = 25  # chunks asked for, as in bench.retrieval
DISTANCE: Final = "share of the distance to the rewrite that ours closes"
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


async def measure(corpus: Corpus, vectors: VectorCache, budget: int) -> list[dict[str, Any]]:
    """One line per way of asking, printed and returned; a conversation's turns are resampled together."""
    index = await indexed(corpus, vectors, budget)
    owners = {page.page_id: name for name, pages in corpus.documents.items() for page in pages}
    asked, said = corpus.sets[0], tasks(corpus.name)
    score = ndcg if asked.measure == "nDCG" else hit
    ways = {name: {key: way(said[key]) for key in asked.questions} for name, way in _WAYS.items()}
    if corpus.name != "doc2dial":
        ways["a person's rewrite"] = dict(corpus.sets[1].questions)
    changed = sum(standalone(said[key].question, said[key].history).is_followup for key in asked.questions)
    print(f"{corpus.name} {asked.measure}@{asked.depth}, {len(asked.questions)} turns, {changed} seen as follow-ups")
    scores: dict[str, list[float]] = {}
    groups = [re.split(r"_\d+$|<", key)[0] for key in asked.questions]
    for name, texts in ways.items():
        values: list[float] = []
        for key, text in texts.items():
            hits = index.search(text, await vectors.query(text), _LIMIT)
            ranked = list(dict.fromkeys(owners[chunk.page_id] for chunk, _ in hits))
            values.append(score(ranked, asked.relevant[key], asked.depth))
        scores[name] = values
    label = f"{corpus.name}, {asked.measure}@{asked.depth}"
    lines = [
        _line(f"{label}: {name}", fmean(values), interval(values, groups), len(values))
        for name, values in scores.items()
    ]
    if rewritten := scores.get("a person's rewrite"):
        alone, ours, best = (np.array(values) for values in (scores["last turn alone"], scores["ours"], rewritten))
        if best.mean() > alone.mean():  # else there is no distance to close

            def closed(rows: Rows) -> float:
                return closed_distance(alone[rows], ours[rows], best[rows])

            between = statistic_interval(closed, len(ours), groups)
            share = closed_distance(alone, ours, best)
            lines.append(_line(f"{label}: {DISTANCE}", share, between, len(ours)))
    for line in lines:
        print(f"  {line['label']:<84}{line['value']:.4f}  ({line['low']:.3f} to {line['high']:.3f})", flush=True)
    return lines


def _line(label: str, value: float, between: tuple[float, float], n: int) -> dict[str, Any]:
    return {"label": label, "value": round(value, 4), "low": round(between[0], 4), "high": round(between[1], 4), "n": n}


async def bench(names: Sequence[str]) -> None:
    """Measure the named corpora, or all three."""
    embedder = LocalEmbedder()
    try:
        with VectorCache(_CACHE, embedder) as vectors:
            corpora_asked = corpora(names or ("doc2dial", "clapnq", "cloud"))
            lines = [line for one in corpora_asked for line in await measure(one, vectors, embedder.window)]
        if not names:
            save("followups", {"figures": lines})
    finally:
        await embedder.close()


if __name__ == "__main__":
    try:
        asyncio.run(bench(sys.argv[1:]))
    except DataMissing as missing:
        sys.exit(str(missing))
