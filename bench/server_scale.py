"""Measures a Qdrant server with a million passages: `python -m bench.server_scale [chunks]`; `make bench-server`.

Uses the server at QDRANT_URL, or starts the one that the tests use.

Each vector is a mixture of two real ones from the example book, with a little noise, so that they are as close together
as those of a book. Texts are made as in `bench.index_scale`. Prints and saves the duration of the ingest, the time
until the server had built its graph, its memory, and the times of hybrid searches with and without a filter. The
collection is removed at the end.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx2
import numpy as np
import orjson
from tests.contract.qdrant_server import qdrant_server

from bench.index_scale import Corpus, build, questions, time_searches
from bench.results import ROOT, save
from chapterverse.embeddings import Vectors
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.index import Filters
from chapterverse.index.server import QdrantIndex

CHUNKS = 1_000_000
COLLECTION = "bench_server_scale"
NOISE = 0.02  # size of the noise in each number, so that mixtures of the same two vectors differ
MODULE, PAGE = Filters(module=("module 3",)), Filters(source_url=("https://book.example/part7/page7.html",))


class RealCorpus(Corpus):
    """Mixtures of real vectors."""

    def __init__(self, chunks: int, real: Vectors) -> None:
        super().__init__(chunks)
        self._real = real

    def vectors(self, count: int) -> Vectors:
        """Mixtures of two real vectors each, with noise, of length 1."""
        first, second = (self._real[self.random.integers(len(self._real), size=count)] for _ in range(2))
        share = self.random.uniform(0.5, 1.0, size=(count, 1)).astype(np.float32)
        noise = NOISE * self.random.normal(size=first.shape).astype(np.float32)
        mixed = share * first + (1 - share) * second + noise
        return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), dtype=np.float32)


async def real_vectors() -> Vectors:
    """Vectors of the example book's paragraphs."""
    pages = sorted((ROOT / "examples" / "book").rglob("*.md"))
    texts = [part for page in pages for part in page.read_text("utf-8").split("\n\n") if len(part) > 80]
    embedder = LocalEmbedder()
    vectors = await embedder.embed_passages(texts)
    await embedder.close()
    return vectors


async def measure(url: str, chunks: int) -> dict[str, object]:
    """Run one measurement."""
    corpus = RealCorpus(chunks, await real_vectors())
    index = QdrantIndex(url=url, collection=COLLECTION, timeout=30.0)
    report: dict[str, object] = {"chunks": chunks, "load": os.getloadavg()[0]}
    started = time.perf_counter()
    report["index_s"] = await build(index, corpus)
    report["build_s"] = time.perf_counter() - started  # includes the generation of the corpus
    await asyncio.to_thread(_wait_until_green, url, f"{COLLECTION}__{(await index.manifest()).generation}")
    report["green_s"] = time.perf_counter() - started
    report["memory_mb"] = _memory(url)
    await time_searches(index, questions(corpus, Filters()))  # the first searches read the files
    for name, filters in {"unfiltered": Filters(), "module": MODULE, "one_page": PAGE}.items():
        p50, p95 = np.percentile(await time_searches(index, questions(corpus, filters)), [50, 95])
        report[f"{name}_ms"] = {"p50": p50, "p95": p95}
    report["memory_after_searches_mb"] = _memory(url)
    await index.close()
    return report


def _wait_until_green(url: str, collection: str) -> None:
    """Wait until the server has optimised the collection."""
    while True:
        reply = httpx2.get(f"{url}/collections/{collection}", timeout=60, trust_env=False).json()["result"]
        if reply["status"] == "green":
            return
        time.sleep(2)


def _memory(url: str) -> float | None:
    """Megabytes of memory that the server reports."""
    reply = httpx2.get(f"{url}/metrics", timeout=60, trust_env=False).text
    found = re.search(r"^memory_resident_bytes ([\d.e+]+)$", reply, re.M)
    return float(found[1]) / 1e6 if found else None


def _remove(url: str) -> None:
    for one in httpx2.get(f"{url}/collections", timeout=60, trust_env=False).json()["result"]["collections"]:
        if one["name"].startswith(f"{COLLECTION}__"):
            httpx2.delete(f"{url}/collections/{one['name']}", timeout=600, trust_env=False)


def main(arguments: Sequence[str]) -> None:
    """Measure and print. A complete run is saved."""
    chunks = int(arguments[0]) if arguments else CHUNKS
    with qdrant_server() as url:
        _remove(url)
        try:
            report = asyncio.run(measure(url, chunks))
        finally:
            _remove(url)
    plain = orjson.dumps(report, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_INDENT_2)
    print(plain.decode(), flush=True)
    if chunks == CHUNKS:
        print(save("server-scale", orjson.loads(plain)).relative_to(Path.cwd()))


if __name__ == "__main__":
    main(sys.argv[1:])
