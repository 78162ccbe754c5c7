"""A cluster of three real Qdrant nodes, of which one is killed during searches and an ingest."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from chapterverse import Book
from chapterverse.index.server import QdrantIndex, Spread
from tests.conftest import EXAMPLE_BOOK
from tests.contract.qdrant_server import QdrantCluster, qdrant_cluster
from tests.faults.processes import until
from tests.index.sample import SITE, ask, manifest, write_page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGES = 60


@pytest.fixture(scope="module")
def nodes() -> Iterator[QdrantCluster]:
    with qdrant_cluster() as running:
        yield running


async def test_killing_a_node_fails_no_search_and_loses_no_page(nodes: QdrantCluster) -> None:
    """The killed node is the first one, which created the cluster and is called first. After its start it is a complete
    member again. The next test kills another node."""
    index = QdrantIndex(url=",".join(nodes.urls), collection="book", spread=Spread(shards=3, replicas=2))
    async with index.writer() as writer:
        for number in range(PAGES):
            await write_page(f"p{number}.html", [f"text {number}"]).put(writer)
        await writer.publish(manifest())

    answered, slowest, over = 0, 0.0, asyncio.Event()

    async def keep_asking() -> None:
        nonlocal answered, slowest
        while not over.is_set():
            started = time.monotonic()
            assert len(await index.search(ask("text"))) == ask("text").limit
            answered, slowest = answered + 1, max(slowest, time.monotonic() - started)
            await asyncio.sleep(0.05)

    readers = [asyncio.create_task(keep_asking()) for _ in range(4)]
    async with index.writer() as writer:
        for number in range(PAGES, 2 * PAGES):
            if number == PAGES + PAGES // 2:
                await asyncio.to_thread(nodes.kill, 0)
            await write_page(f"p{number}.html", [f"text {number}"]).put(writer)
        published = await writer.publish(manifest())
    after = answered
    while answered < after + 20:
        await asyncio.sleep(0.05)
        assert not any(reader.done() for reader in readers), "a question failed"
    assert published.pages == 2 * PAGES
    assert {page.url for page in await index.pages()} == {f"{SITE}/p{number}.html" for number in range(2 * PAGES)}

    await asyncio.to_thread(nodes.start, 0)
    await asyncio.to_thread(_wait_until_whole, nodes, f"book__{published.generation}")
    over.set()
    await asyncio.gather(*readers)
    assert {page.url for page in await index.pages()} == {f"{SITE}/p{number}.html" for number in range(2 * PAGES)}
    print(f"{answered} searches, slowest {slowest:.2f} s")
    await index.close()


async def test_answers_and_ingest_continue_after_a_node_is_killed(
    nodes: QdrantCluster, tmp_path: Path, database_url: str
) -> None:
    """The whole package on the cluster: questions are answered and an ingest finishes."""
    spread = {"qdrant_shards": 3, "qdrant_replicas": 2, "qdrant_collection_name": "whole", "database_url": database_url}
    async with Book.open(tmp_path / "home", qdrant_url=",".join(nodes.urls), **spread) as book:
        await book.ingest(EXAMPLE_BOOK / "ros2")
        killed = asyncio.Event()
        statuses: list[str] = []

        async def keep_asking() -> None:
            late = 0
            while late < 5:  # five answers after the node was killed and the ingest finished
                statuses.append((await book.ask("What is a node in ROS 2?")).status)
                late += killed.is_set()
                await asyncio.sleep(0.1)

        asking = asyncio.create_task(keep_asking())
        reading = asyncio.create_task(book.ingest(EXAMPLE_BOOK / "isaac", EXAMPLE_BOOK / "simulation"))
        await until((tmp_path / "home" / "unpublished-vectors.sqlite").exists, what="the ingest")
        await asyncio.to_thread(nodes.kill, 1)
        ledger = await reading
        killed.set()
        await asking
        assert set(statuses) == {"answered"}
        assert (ledger.count("added"), ledger.count("failed")) == (8, 0)
        found = await book.search("What does nvblox build?")
        assert found.results[0].page_title == "Isaac ROS", "pages ingested meanwhile are found"
    await asyncio.to_thread(nodes.start, 1)


def _wait_until_whole(nodes: QdrantCluster, collection: str) -> None:
    """Waits until every replica of every shard is active, as seen by every node."""
    deadline = time.monotonic() + 120
    while True:
        states: list[str] = []
        for url in nodes.urls:
            info = httpx2.get(f"{url}/collections/{collection}/cluster", timeout=10, trust_env=False).json()["result"]
            states += [one["state"] for one in (*info["local_shards"], *info["remote_shards"])]
        if set(states) == {"Active"} and len(states) == 3 * 6:
            return
        assert time.monotonic() < deadline, states
        time.sleep(0.2)
