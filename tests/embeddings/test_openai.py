"""The OpenAI embedder: its request, answers in another order or base64, and compatible servers."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from chapterverse.embeddings.openai import OpenAIEmbedder
from chapterverse.errors import EmbeddingError
from tests.embeddings.stub import BASE64, KEY, SHUFFLED, WRONG_DIMENSION, EmbeddingStub

TEXTS = ["the first text", "another one", "a third"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def openai(server: EmbeddingStub) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(KEY, base_url=f"{server.url}/v1")
    yield embedder
    await embedder.close()


async def test_request_fields(openai: OpenAIEmbedder, stub: EmbeddingStub) -> None:
    await openai.embed_passages(TEXTS)
    (request,) = stub.received
    assert (request.method, request.path) == ("POST", "/v1/embeddings")
    assert request.body == {
        "model": "text-embedding-3-small",
        "input": TEXTS,
        "encoding_format": "float",
        "dimensions": 1536,
    }
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_shorter_vectors_can_be_requested(stub: EmbeddingStub) -> None:
    embedder = OpenAIEmbedder(KEY, base_url=f"{stub.url}/v1", dimension=256)
    assert (await embedder.embed_query("one")).shape == (256,)
    await embedder.close()


@pytest.mark.parametrize("fault", [BASE64, SHUFFLED], ids=lambda fault: fault.kind)
async def test_answers_in_base64_or_another_order_are_read(
    openai: OpenAIEmbedder, stub: EmbeddingStub, fault: object
) -> None:
    plain = await openai.embed_passages(TEXTS)
    stub.play(fault)  # type: ignore[arg-type]
    np.testing.assert_allclose(await openai.embed_passages(TEXTS), plain, atol=1e-6)
    assert len(stub.received) == 2


async def test_compatible_server_works_without_a_key(stub: EmbeddingStub) -> None:
    stub.key = ""
    embedder = OpenAIEmbedder("", "nomic-embed-text", f"{stub.url}/v1/", dimension=768)
    await embedder.probe()
    assert (await embedder.embed_query("one")).shape == (768,)
    assert all("authorization" not in request.headers for request in stub.received)
    assert "dimensions" not in stub.received[-1].body
    await embedder.close()


async def test_wrong_dimension_error_names_both_dimensions(stub: EmbeddingStub) -> None:
    embedder = OpenAIEmbedder(KEY, "nomic-embed-text", f"{stub.url}/v1", dimension=1536)
    with pytest.raises(EmbeddingError, match=r"not of 1536\. Set OPENAI_EMBEDDING_DIMENSION=768\.$"):
        await embedder.embed_query("one")
    assert len(stub.received) == 1
    stub.play(WRONG_DIMENSION)
    with pytest.raises(EmbeddingError, match="of 767 dimensions"):
        await embedder.embed_query("one")
    await embedder.close()


async def test_no_call_exceeds_256_texts_or_300_000_bytes(openai: OpenAIEmbedder, stub: EmbeddingStub) -> None:
    assert len(await openai.embed_passages(["short"] * 300)) == 300
    assert sorted(len(request.texts) for request in stub.received) == [44, 256]
    stub.reset()
    assert len(await openai.embed_passages(["é" * 5000] * 40)) == 40
    assert len(stub.received) == 2
    for request in stub.received:
        assert max(len(text.encode()) for text in request.texts) <= 8191
        assert sum(len(text.encode()) for text in request.texts) <= 300_000


async def test_unknown_model_is_named(stub: EmbeddingStub) -> None:
    embedder = OpenAIEmbedder(KEY, "text-embedding-9", f"{stub.url}/v1")
    with pytest.raises(EmbeddingError, match="does not serve the model text-embedding-9"):
        await embedder.embed_query("one")
    assert len(stub.received) == 1
    await embedder.close()


async def test_probe_checks_the_key_and_accepts_a_server_without_models(
    openai: OpenAIEmbedder, stub: EmbeddingStub
) -> None:
    await openai.probe()
    stub.lists_models = False  # a server that only embeds
    await openai.probe()
    assert [(request.method, request.path) for request in stub.received] == [("GET", "/v1/models")] * 2
    refused = OpenAIEmbedder("wrong", base_url=f"{stub.url}/v1")
    with pytest.raises(EmbeddingError, match=r"^OPENAI_API_KEY was refused by the embedding server\.$"):
        await refused.probe()
    await refused.close()


def test_fingerprint_differs_by_model_and_dimension() -> None:
    embedders = [OpenAIEmbedder(KEY), OpenAIEmbedder(KEY, dimension=256), OpenAIEmbedder(KEY, "nomic-embed-text")]
    assert len({embedder.fingerprint for embedder in embedders}) == 3
    assert len({embedder.fingerprint.digest for embedder in embedders}) == 3
