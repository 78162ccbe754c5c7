"""Run the retrieval bench: BM25, dense search, rank fusion for comparison, and ours.

Pages are cut, embedded and indexed by the product and searched with `EdgeIndex.search`. The score of a document is that
of its best chunk. All sets use the same settings. Prints a table and writes `bench/results/retrieval-COMMIT.json` with
the score of each question, so that a later run can be compared question by question. With `--read N`, the section
reader also sorts the first passages, as for an answer without a key, for N questions of each set.

    python -m bench.retrieval.run [CORPUS ...] [--against bench/results/retrieval-COMMIT.json] [--read N]
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from bench.results import save
from bench.retrieval.sets import Corpus, DataMissing, Measure, RetrievalSet, corpora
from bench.retrieval.vectors import VectorCache
from chapterverse.answering.reading import CANDIDATES, read_passages
from chapterverse.book import Chunk, Hit, Manifest, Page, PageRecord, text_hash
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.evaluation.measures import hit, ndcg, reciprocal_rank
from chapterverse.evaluation.statistics import gain_interval, interval
from chapterverse.index import HybridQuery, bm25, fusion
from chapterverse.index.edge import EdgeIndex
from chapterverse.ingestion.chunking import cut
from chapterverse.retrieval import passage_of
from chapterverse.trained.section_reader import shared_reader

_ROOT: Final = Path(__file__).resolve().parents[2]
_CACHE: Final = _ROOT / ".cache" / "bench" / "vectors.sqlite"
# Number of chunks to search for: enough for ten documents, and as deep as an ordinary question searches.
_LIMIT: Final = 25
_RRF_K: Final = 60
_WEIGHTS: Final[Mapping[str, float | None]] = {"bm25": 0.0, "dense": 1.0, "ours": None}
_MEASURES: Final[Mapping[Measure, Callable[[Sequence[str], Mapping[str, float], int], float]]] = {
    "nDCG": ndcg,
    "MRR": reciprocal_rank,
    "hit": hit,
}


@dataclass(frozen=True, slots=True)
class Line:
    """The results of one set: means over its questions."""

    label: str
    questions: int
    bm25: float
    dense: float
    rrf: float
    ours: float
    interval: tuple[float, float]  # of our score
    gain: float  # ours minus the better of BM25 and dense
    gain_interval: tuple[float, float]
    first_bm25: float = 0.0  # share of questions whose first document is right
    first: float = 0.0  # the same for ours
    first_gain_interval: tuple[float, float] = (0.0, 0.0)  # ours minus BM25
    scores: Mapping[str, float] = field(default_factory=dict)  # our score of each question
    firsts: Mapping[str, float] = field(default_factory=dict)  # whether the first document is right
    read: Mapping[str, float] = field(default_factory=dict)  # scores in the section reader's order
    read_firsts: Mapping[str, float] = field(default_factory=dict)


async def measure(corpus: Corpus, vectors: VectorCache, budget: int, read: int = 0) -> list[Line]:
    """Index a corpus and ask its sets."""
    started = time.monotonic()
    chunks = {name: [cut(page, count_tokens, budget) for page in pages] for name, pages in corpus.documents.items()}
    documents = {page.page_id: name for name, pages in corpus.documents.items() for page in pages}
    with tempfile.TemporaryDirectory() as directory:
        index = EdgeIndex(Path(directory), timeout=60.0)
        try:
            count = await _fill(index, corpus, chunks, vectors)
            filled = time.monotonic()
            lines = [await _ask(index, one, documents, vectors, read) for one in corpus.sets]
        finally:
            await index.close()
    _say(
        f"{corpus.name}: {len(documents)} pages, {count} chunks; indexed in {filled - started:.0f} s, "
        f"asked in {time.monotonic() - filled:.0f} s"
    )
    return lines


async def _fill(index: EdgeIndex, corpus: Corpus, chunks: Mapping[str, list[list[Chunk]]], vectors: VectorCache) -> int:
    flat = [chunk for pages in chunks.values() for page in pages for chunk in page]
    rows = await vectors.passages([chunk.passage for chunk in flat])
    done = 0
    async with index.writer(fresh=True) as writer:
        for name, pages in corpus.documents.items():
            for page, own in zip(pages, chunks[name], strict=True):
                await writer.put(page, _record(page, len(own)), own, rows[done : done + len(own)])
                done += len(own)
        fingerprint = vectors.fingerprint
        await writer.publish(Manifest(fingerprint, "", "", len(corpus.documents), len(flat), dict(bm25.EDGE_DEFAULTS)))
    return len(flat)


def _record(page: Page, chunks: int) -> PageRecord:
    return PageRecord(page.page_id, page.url, page.source, text_hash(page.text), chunks)


async def _ask(
    index: EdgeIndex, asked: RetrievalSet, documents: Mapping[str, str], vectors: VectorCache, read: int
) -> Line:
    scores: dict[str, dict[str, float]] = {name: {} for name in (*_WEIGHTS, "rrf", "read")}
    first: dict[str, dict[str, float]] = {name: {} for name in scores}
    score = _MEASURES[asked.measure]
    is_read = set(list(asked.questions)[:: max(1, len(asked.questions) // read)]) if read else set()
    for key, text in asked.questions.items():
        vector = await vectors.query(text)
        hits = {
            name: await index.search(HybridQuery(text, vector, _LIMIT, dense_weight=weight))
            for name, weight in _WEIGHTS.items()
        }
        found = {name: [hit.chunk for hit in ranked] for name, ranked in hits.items()}
        found["rrf"] = _rank_fusion(found["bm25"], found["dense"])
        if key in is_read:
            found["read"] = await _read(text, hits["ours"])
        for name, chunks in found.items():
            ranked = list(dict.fromkeys(documents[chunk.page_id] for chunk in chunks))
            scores[name][key] = score(ranked, asked.relevant[key], asked.depth)
            first[name][key] = hit(ranked, asked.relevant[key], 1)
    return _line(asked, scores, first)


async def _read(question: str, hits: Sequence[Hit]) -> list[Chunk]:
    """Return the passages in the order that an answer without a key uses."""
    passages = [passage_of(hit, rank, 0.0) for rank, hit in enumerate(hits[:CANDIDATES], 1)]
    readings = await read_passages(question, (), passages, shared_reader())
    order = sorted(range(len(passages)), key=lambda at: (-readings[at].score, at))
    return [hits[at].chunk for at in [*order, *range(len(passages), len(hits))]]


def _line(
    asked: RetrievalSet, by_question: Mapping[str, Mapping[str, float]], firsts: Mapping[str, Mapping[str, float]]
) -> Line:
    scores = {name: list(values.values()) for name, values in by_question.items() if name != "read"}
    first = {name: list(values.values()) for name, values in firsts.items()}
    means = {name: fmean(values) for name, values in scores.items()}
    better = max(("bm25", "dense"), key=lambda name: means[name])
    return Line(
        label=asked.label,
        questions=len(asked.questions),
        **means,
        interval=interval(scores["ours"]),
        gain=means["ours"] - means[better],
        gain_interval=gain_interval(scores["ours"], scores[better]),
        first_bm25=fmean(first["bm25"]),
        first=fmean(first["ours"]),
        first_gain_interval=gain_interval(first["ours"], first["bm25"]),
        scores=by_question["ours"],
        firsts=firsts["ours"],
        read=by_question["read"],
        read_firsts=firsts["read"],
    )


def _rank_fusion(*rankings: Sequence[Chunk]) -> list[Chunk]:
    """Reciprocal rank fusion of the two rankings, for comparison."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, chunk in enumerate(ranking, 1):
            scores[chunk.chunk_id] = scores.get(chunk.chunk_id, 0.0) + 1 / (_RRF_K + rank)
    chunks = {chunk.chunk_id: chunk for ranking in rankings for chunk in ranking}
    return [chunks[name] for name in sorted(scores, key=lambda name: -scores[name])]


def table(lines: Iterable[Line]) -> str:
    """The results as a table, and their average gain."""
    lines = list(lines)
    head = (
        f"{'set':<42}{'n':>5}  {'BM25':>5} {'dense':>5} {'RRF':>5} {'ours':>5}  {'gain':>5}  {'95 % of the gain':<16}  "
        "first page right: BM25, ours"
    )
    rows = [
        f"{line.label:<42}{line.questions:>5}  {line.bm25:5.3f} {line.dense:5.3f} {line.rrf:5.3f} {line.ours:5.3f}  "
        f"{100 * line.gain:+5.1f}  {_points(line.gain_interval):<16}  {line.first_bm25:.3f} {line.first:.3f} "
        f"({_points(line.first_gain_interval)})"
        for line in lines
    ]
    better = fmean(max(line.bm25, line.dense) for line in lines)
    means = "  ".join(
        f"{name} {fmean(getattr(line, name) for line in lines):.3f}" for name in ("bm25", "dense", "rrf", "ours")
    )
    gain = 100 * fmean(line.gain for line in lines)
    worst = 100 * min(line.gain for line in lines)
    last = f"average: {means}  better of the two {better:.3f}  gain {gain:+.2f} points, worst set {worst:+.2f}"
    return "\n".join([head, *rows, last])


def comparison(lines: Iterable[Line], before: Mapping[str, Any]) -> str:
    """Compare the results with those of an earlier run, in points. The comparison is paired if the earlier run has
    scores for each question."""
    earlier = {one["label"]: one for one in before["sets"]}
    rows, changes = [], []
    for line in lines:
        if (old := earlier.get(line.label)) is None:
            continue
        changes.append(line.ours - old["ours"])
        then: Mapping[str, float] = old.get("scores", {})
        same = [name for name in line.scores if name in then]
        paired = gain_interval([line.scores[name] for name in same], [then[name] for name in same]) if same else None
        rows.append(f"{line.label:<42}{100 * changes[-1]:+5.1f}  {_points(paired) if paired else 'not paired'}")
    return "\n".join([*rows, f"average {100 * fmean(changes):+.2f}, worst set {100 * min(changes):+.2f}"])


def read_table(lines: Iterable[Line]) -> str:
    """Return a table of the changes by the section reader's order, on the questions that it read."""
    rows, changes = [f"{'set':<42}{'n':>5}  search  read  change            first page right: search, read"], []
    for line in lines:
        names = list(line.read)
        before, after = [line.scores[name] for name in names], [line.read[name] for name in names]
        firsts, read = [line.firsts[name] for name in names], [line.read_firsts[name] for name in names]
        changes.append(fmean(after) - fmean(before))
        rows.append(
            f"{line.label:<42}{len(names):>5}  {fmean(before):.3f}  {fmean(after):.3f} {100 * changes[-1]:+5.1f} "
            f"({_points(gain_interval(after, before))})  {fmean(firsts):.3f} {fmean(read):.3f} "
            f"({_points(gain_interval(read, firsts))})"
        )
    return "\n".join([*rows, f"average {100 * fmean(changes):+.2f}, worst set {100 * min(changes):+.2f}"])


def _points(interval_: tuple[float, float]) -> str:
    return f"{100 * interval_[0]:+.1f} to {100 * interval_[1]:+.1f}"


def _settings(embedder: LocalEmbedder) -> dict[str, Any]:
    return {
        "embedding": asdict(embedder.fingerprint),
        "budget_tokens": embedder.window,
        "bm25": dict(bm25.EDGE_DEFAULTS),
        "dense_weight": fusion.DENSE_WEIGHT,
        "candidates": fusion.depth(_LIMIT),
        "chunks_asked": _LIMIT,
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, tuple) else value


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def bench(names: Sequence[str], before: Mapping[str, Any] | None, read: int) -> None:
    """Measure the named corpora, or all. Only a full run is saved."""
    started = time.monotonic()
    embedder = LocalEmbedder()
    lines: list[Line] = []
    try:
        with VectorCache(_CACHE, embedder) as vectors:
            for corpus in corpora(names):
                lines += await measure(corpus, vectors, embedder.window, read)
            embedded = vectors.embedded
    finally:
        await embedder.close()
    print(table(lines))
    if before is not None:
        print(comparison(lines, before))
    if read:
        print(read_table(lines))
    _say(f"{time.monotonic() - started:.0f} s; {embedded} texts embedded, the others were cached")
    if not names:
        sets = [{key: _rounded(value) for key, value in asdict(line).items()} for line in lines]
        gain = _rounded(fmean(line.gain for line in lines))
        path = save("retrieval", {"settings": _settings(embedder), "sets": sets, "gain": gain})
        _say(f"written to {path.relative_to(_ROOT)}")


if __name__ == "__main__":
    try:
        arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        arguments.add_argument("corpora", nargs="*")
        arguments.add_argument("--against", type=Path)
        arguments.add_argument("--read", type=int, default=0, metavar="N")
        given = arguments.parse_args()
        before = json.loads(given.against.read_text("utf-8")) if given.against else None
        asyncio.run(bench(given.corpora, before, given.read))
    except DataMissing as missing:
        sys.exit(str(missing))
