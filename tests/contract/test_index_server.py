"""Behaviour that only the index on a Qdrant server has, on a real server."""

import asyncio
import re
from typing import Any

import httpx
import pytest

from chapterverse.errors import ConfigurationError, IndexTimeout, IngestionError, RetrievalUnavailable
from chapterverse.index import IndexWriter
from chapterverse.testing import HashEmbedder
from tests.index.sample import ask, manifest, write_page

pytestmark = pytest.mark.slow


async def names(url: str) -> set[str]:
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(url=url, check_compatibility=False)
    found = {description.name for description in (await client.get_collections()).collections}
    await client.close()
    return found


async def test_last_two_generations_are_kept_behind_an_alias(qdrant_url: str) -> None:
    from chapterverse.index.server import QdrantIndex

    index = QdrantIndex(url=qdrant_url, collection="states")
    seen: list[str] = []
    for number in range(3):
        async with index.writer() as writer:
            await write_page(f"p{number}.html", ["text"]).put(writer)
            await writer.publish(manifest())
        seen.append((await index.manifest()).generation)
    kept = {name for name in await names(qdrant_url) if re.match("states(__|$)", name)}
    assert kept == {f"states__{generation}" for generation in seen[1:]}
    await index.close()


async def test_collection_has_the_configured_shards_and_replicas(qdrant_url: str) -> None:
    from qdrant_client import AsyncQdrantClient

    from chapterverse.index.server import QdrantIndex, Spread

    index = QdrantIndex(url=qdrant_url, collection="spread", spread=Spread(shards=3, replicas=2))
    async with index.writer() as writer:
        for number in range(8):
            await write_page(f"p{number}.html", [f"text {number}"]).put(writer)
        await writer.publish(manifest())
    client = AsyncQdrantClient(url=qdrant_url, check_compatibility=False)
    shape = (await client.get_collection("spread")).config.params
    assert (shape.shard_number, shape.replication_factor) == (3, 2)
    assert len(await index.search(ask("text"))) == min(8, ask("text").limit)
    for closing in (client, index):
        await closing.close()


async def test_foreign_collection_is_not_changed(qdrant_url: str) -> None:
    from qdrant_client import AsyncQdrantClient, models

    from chapterverse.index.server import QdrantIndex

    client = AsyncQdrantClient(url=qdrant_url, check_compatibility=False)
    await client.create_collection("foreign", vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT))
    await client.create_collection("mine__backup", vectors_config={})
    foreign, mine = (QdrantIndex(url=qdrant_url, collection=name) for name in ("foreign", "mine"))
    with pytest.raises(ConfigurationError, match="QDRANT_COLLECTION_NAME"):
        async with foreign.writer():
            raise AssertionError("wrote over a foreign collection")
    with pytest.raises(RetrievalUnavailable, match="not made by Chapterverse"):
        await foreign.search(ask("x"))
    for _ in range(2):
        async with mine.writer() as writer:
            await writer.publish(manifest())
    assert {"foreign", "mine__backup"} <= await names(qdrant_url)
    for closing in (client, foreign, mine):
        await closing.close()


async def test_lock_of_a_dead_writer_expires(qdrant_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from chapterverse.index import server_writer
    from chapterverse.index.server import QdrantIndex

    index = QdrantIndex(url=qdrant_url, collection="locked")
    left = index.writer()
    late = await left.__aenter__()
    with pytest.raises(IngestionError, match="another ingest is running"):
        async with index.writer():
            raise AssertionError("a second writer was opened")
    monkeypatch.setattr(server_writer, "_STALE", -1.0)
    async with index.writer() as writer:
        await writer.publish(manifest())
    assert (await index.manifest()).pages == 0
    with pytest.raises(IngestionError, match="another ingest has published"):
        await late.publish(manifest())
    await left.__aexit__(None, None, None)
    await index.close()


async def test_lock_is_renewed_while_nothing_is_written(qdrant_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from chapterverse.index import server_writer
    from chapterverse.index.server import QdrantIndex

    monkeypatch.setattr(server_writer, "_STALE", 1.0)
    monkeypatch.setattr(server_writer, "_RENEW_EVERY", 0.1)
    index = QdrantIndex(url=qdrant_url, collection="idle")
    async with index.writer():
        await asyncio.sleep(1.5)
        with pytest.raises(IngestionError, match="another ingest is running"):
            async with index.writer():
                raise AssertionError("a second writer was opened")
    monkeypatch.setattr(server_writer, "_STALE", -1.0)
    async with index.writer() as late:
        async with index.writer() as writer:
            await writer.publish(manifest())
        with pytest.raises(IngestionError, match="another ingest has taken over"):
            await until_it_fails(late)
    await index.close()


async def until_it_fails(writer: IndexWriter) -> None:
    async with asyncio.timeout(60):
        while True:
            await write_page("p.html", ["text"]).put(writer)


@pytest.mark.parametrize("cut", ["lost", "cancelled"])
async def test_published_book_survives_a_lost_answer_and_a_cancellation(
    qdrant_url: str, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.http.exceptions import ResponseHandlingException

    from chapterverse.index.server import QdrantIndex

    index = QdrantIndex(url=qdrant_url, collection=f"cut_{cut}")
    switch, switched = AsyncQdrantClient.update_collection_aliases, asyncio.Event()

    async def interrupted(client: AsyncQdrantClient, *arguments: Any) -> None:
        await switch(client, *arguments)
        switched.set()
        if cut == "lost":
            raise ResponseHandlingException(TimeoutError())
        await asyncio.sleep(0.2)

    async def publish() -> None:
        async with index.writer() as writer:
            await write_page("p.html", ["text"]).put(writer)
            await writer.publish(manifest())

    monkeypatch.setattr(AsyncQdrantClient, "update_collection_aliases", interrupted)
    run = asyncio.create_task(publish())
    await switched.wait()
    if cut == "cancelled":
        run.cancel()
    await run
    assert (await index.manifest()).pages == 1
    async with index.writer() as writer:
        assert len(writer.records) == 1
    await index.close()


async def test_collection_is_kept_if_it_may_have_been_published(
    qdrant_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may still move the alias after the client has given up."""
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.http.exceptions import ResponseHandlingException

    from chapterverse.index.server import QdrantIndex

    index = QdrantIndex(url=qdrant_url, collection="late")
    held: list[Any] = []

    async def unanswered(client: AsyncQdrantClient, operations: Any) -> None:
        held.append(operations)
        raise ResponseHandlingException(httpx.ReadTimeout("no answer"))

    with monkeypatch.context() as patched, pytest.raises(IndexTimeout):
        patched.setattr(AsyncQdrantClient, "update_collection_aliases", unanswered)
        async with index.writer() as writer:
            await writer.publish(manifest())
    await index.client.update_collection_aliases(*held)
    assert (await index.manifest()).pages == 0
    await index.close()


async def test_lock_without_its_holders_name_is_broken(qdrant_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer may be killed between the request that makes the lock and the one that writes its name."""
    from chapterverse.index import server_writer
    from chapterverse.index.server import QdrantIndex

    index = QdrantIndex(url=qdrant_url, collection="nameless")
    renew = server_writer._Lock.renew
    monkeypatch.setattr(server_writer, "_NAME_SECONDS", 0.1)
    monkeypatch.setattr(server_writer._Lock, "renew", killed)
    with pytest.raises(KeyboardInterrupt):
        async with index.writer():
            raise AssertionError("the writer was not killed")
    monkeypatch.setattr(server_writer._Lock, "renew", renew)
    async with index.writer() as writer:
        await writer.publish(manifest())
    assert (await index.manifest()).pages == 0
    await index.close()


async def killed(*_: object) -> None:
    raise KeyboardInterrupt


async def test_a_key_over_plain_http_prints_no_warning(qdrant_url: str) -> None:
    """The Qdrant client would warn about a key over plain HTTP, and warnings fail the tests."""
    from chapterverse.settings import Settings
    from chapterverse.wiring import choose_index

    given = Settings.load(qdrant_url=qdrant_url, qdrant_api_key="some-key")
    index, why = choose_index(given, HashEmbedder().fingerprint)
    assert index._own._client._client._rest_headers["api-key"] == "some-key"  # type: ignore[attr-defined]
    assert "QDRANT_API_KEY is sent as plain text" in why, "doctor reports it instead"
    await index.close()
