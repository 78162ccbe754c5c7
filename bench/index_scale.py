"""Measures the embedded index with 50,000 and 100,000 chunks: `python -m bench.index_scale [chunks ...]`.

The data is synthetic, so that only its size matters: clustered random unit vectors, and texts of about 1 kB with
Zipf-distributed words. Prints build time, disk usage, memory of the index process, query times and the longest time for
which the event loop was blocked.
"""

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import orjson

from bench.results import save
from chapterverse.book import Chunk, Fingerprint, Manifest, Page, PageRecord, chunk_id_for, page_id_for, text_hash
from chapterverse.embeddings import Vectors
from chapterverse.index import Filters, HybridQuery, Index
from chapterverse.index.edge import EdgeIndex

DIMENSION = 384
CHUNKS_PER_PAGE = 20
MODULES = 8  # a module filter keeps 12.5 %
WORDS = 30_000
WORDS_PER_CHUNK = 160  # about 1 kB
QUERIES = 200


class Corpus:
    """Vectors around centres, like the topics of a book, and words distributed by Zipf's law."""

    def __init__(self, chunks: int) -> None:
        self.random = np.random.default_rng(chunks)
        self.centres = self.random.normal(size=(500, DIMENSION)).astype(np.float32)
        self.pages = chunks // CHUNKS_PER_PAGE

    def vectors(self, count: int) -> Vectors:
        near = self.centres[self.random.integers(len(self.centres), size=count)]
        vectors = near + 0.7 * self.random.normal(size=near.shape).astype(np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def words(self, count: int) -> str:
        return " ".join(f"w{number % WORDS:x}" for number in self.random.zipf(1.2, size=count))

    def page(self, number: int) -> tuple[Page, PageRecord, list[Chunk], Vectors]:
        url = f"https://book.example/part{number % 50}/page{number}.html"
        page_id, module = page_id_for(url), f"module {number % MODULES}"
        chunks = [self._chunk(part, page_id, url, module) for part in range(CHUNKS_PER_PAGE)]
        page = Page(page_id, url, f"Page {number}", module, "bench", "\n".join(c.text for c in chunks), (), ())
        record = PageRecord(page_id, url, "bench", text_hash(url), len(chunks))
        return page, record, chunks, self.vectors(len(chunks))

    def _chunk(self, part: int, page_id: str, url: str, module: str) -> Chunk:
        text = self.words(WORDS_PER_CHUNK)
        digest = text_hash(text)
        return Chunk(
            chunk_id=chunk_id_for(page_id, digest, part),
            page_id=page_id,
            page_url=url,
            source_url=f"{url}#s{part}",
            page_title=url[-12:],
            section_heading=f"Section {part}",
            breadcrumb=f"Book › Section {part}",
            module=module,
            chunk_index=part,
            start=0,
            end=len(text),
            text=text,
            content_hash=digest,
        )


async def build(index: Index, corpus: Corpus) -> float:
    """Build the index. Return the seconds spent in the index, without the generation of the corpus."""
    seconds = 0.0
    async with index.writer(fresh=True) as writer:
        for number in range(corpus.pages):
            page = corpus.page(number)
            start = time.perf_counter()
            await writer.put(*page)
            seconds += time.perf_counter() - start
        start = time.perf_counter()
        await writer.publish(Manifest(Fingerprint("bench", DIMENSION, "0"), "", "2026-01-01T00:00:00Z", 0, 0))
        return seconds + time.perf_counter() - start


class Heart:
    """Ticks every millisecond on the event loop and records, in milliseconds, how late each tick was and how much CPU
    time the loop used since the last one. On a busy machine, other programs also cause delays, but not CPU time."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.used: list[float] = []

    async def beat(self) -> None:
        while True:
            start, used = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            self.late.append((time.perf_counter() - start - 0.001) * 1000)
            self.used.append((time.thread_time() - used) * 1000)

    def report(self) -> dict[str, float]:
        return {
            "late_p99": float(np.percentile(self.late, 99)),
            "late_max": max(self.late),
            "used_p99": float(np.percentile(self.used, 99)),
            "used_max": max(self.used),
        }


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Heart]:
    """Run a heartbeat during the block."""
    heart = Heart()
    beating = asyncio.create_task(heart.beat())
    try:
        yield heart
    finally:
        beating.cancel()


def questions(corpus: Corpus, filters: Filters) -> list[HybridQuery]:
    return [HybridQuery(corpus.words(8), vector, limit=10, filters=filters) for vector in corpus.vectors(QUERIES)]


async def time_searches(index: Index, queries: list[HybridQuery]) -> list[float]:
    """Milliseconds of each hybrid search, run one after the other."""
    times = []
    for query in queries:
        start = time.perf_counter()
        await index.search(query)
        times.append((time.perf_counter() - start) * 1000)
    return times


def disk(directory: Path) -> float:
    """Megabytes allocated on disk; the files are sparse."""
    return sum(path.stat().st_blocks for path in directory.rglob("*") if path.is_file()) * 512 / 1e6


def memory_of_children() -> dict[str, float]:
    """Megabytes of the child processes: private memory, and pages of files, which may be shared.

    Not `ru_maxrss`: a process inherits that of its parent, which has just built the index and is larger.
    """
    sums = {"RssAnon": 0.0, "RssFile": 0.0}
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        status = dict(line.split(":", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines())
        for name in sums:
            sums[name] += int(status[name].split()[0]) / 1024
    return sums


async def measure(chunks: int, directory: Path) -> dict[str, object]:
    corpus, index = Corpus(chunks), EdgeIndex(directory)
    report: dict[str, object] = {"chunks": chunks, "load": os.getloadavg()[0]}
    report["build_s"] = await build(index, corpus)
    report["disk_mb"] = disk(directory)
    start = time.perf_counter()
    await index.probe()
    report["start_s"] = time.perf_counter() - start
    cases = {
        "unfiltered": Filters(),
        "module": Filters(module=("module 3",)),
        "one_page": Filters(source_url=("https://book.example/part7/page7.html",)),
        "prefix": Filters(source_url_prefix="https://book.example/part7/"),
        "prefix_inside_a_name": Filters(source_url_prefix="https://book.example/part7/page1"),
    }
    await time_searches(index, questions(corpus, Filters()))  # the first searches read the files
    for name, filters in cases.items():
        p50, p95 = np.percentile(await time_searches(index, questions(corpus, filters)), [50, 95])
        report[f"{name}_ms"] = {"p50": p50, "p95": p95}
    async with heartbeat() as heart:
        await asyncio.sleep(3)
        report["heartbeat_idle_ms"] = heart.report()
    clients = [questions(corpus, Filters()) for _ in range(4)]
    async with heartbeat() as heart:
        await asyncio.gather(*(time_searches(index, queries) for queries in clients))
        report["heartbeat_searching_ms"] = heart.report()
    report["index_process_mb"] = memory_of_children()
    await index.close()
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    report["index_process_cpu_s"] = child.ru_utime + child.ru_stime
    return report


def main() -> None:
    reports = []
    for chunks in [int(size) for size in sys.argv[1:]] or [50_000, 100_000]:
        with tempfile.TemporaryDirectory(prefix="bench-index-") as directory:
            report = asyncio.run(measure(chunks, Path(directory)))
        plain = orjson.dumps(report, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_INDENT_2)
        print(plain.decode(), flush=True)
        reports.append(orjson.loads(plain))
    if not sys.argv[1:]:
        save("index-scale", {"sizes": reports})


if __name__ == "__main__":
    main()
