"""The Cohere embedder: its request, its models, its limit of 96 texts."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from chapterverse.embeddings.cohere import CohereEmbedder
from chapterverse.errors import ConfigurationError, EmbeddingError
from tests.embeddings.stub import KEY, EmbeddingStub, status


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cohere(server: EmbeddingStub) -> AsyncIterator[CohereEmbedder]:
    embedder = CohereEmbedder(KEY, base_url=server.url)
    yield embedder
    await embedder.close()


async def test_questions_and_passages_have_their_input_type(cohere: CohereEmbedder, stub: EmbeddingStub) -> None:
    await cohere.embed_query("one")
    await cohere.embed_passages(["two", "three"])
    query, passages = stub.received
    assert (query.method, query.path) == (passages.method, passages.path) == ("POST", "/v2/embed")
    assert query.body == {
        "model": "embed-english-v3.0",
        "texts": ["one"],
        "input_type": "search_query",
        "embedding_types": ["float"],
        "truncate": "END",
    }
    assert passages.body == {**query.body, "texts": ["two", "three"], "input_type": "search_document"}
    assert query.headers["content-type"] == "application/json"
    assert query.headers["authorization"] == f"Bearer {KEY}"


async def test_no_call_has_more_than_96_texts(cohere: CohereEmbedder, stub: EmbeddingStub) -> None:
    texts = [f"text {number}" for number in range(200)]
    assert len(await cohere.embed_passages(texts)) == 200
    assert sorted(len(request.texts) for request in stub.received) == [8, 96, 96]
    assert stub.most_at_once <= 4


@pytest.mark.parametrize(
    ("model", "dimension"),
    [
        ("embed-english-v3.0", 1024),
        ("embed-multilingual-v3.0", 1024),
        ("embed-english-light-v3.0", 384),
        ("embed-multilingual-light-v3.0", 384),
        ("embed-v4.0", 1536),
    ],
)
def test_known_models_have_their_dimension(model: str, dimension: int) -> None:
    embedder = CohereEmbedder(KEY, model)
    assert embedder.fingerprint.dimension == dimension
    assert embedder.engine == f"Cohere {model}"


async def test_dimension_is_sent_for_models_with_several(stub: EmbeddingStub) -> None:
    embedder = CohereEmbedder(KEY, "embed-v4.0", stub.url, dimension=512)
    assert (await embedder.embed_query("one")).shape == (512,)
    assert stub.received[0].body["output_dimension"] == 512
    await embedder.close()


@pytest.mark.parametrize(("model", "dimension"), [("embed-v9", None), ("", None), ("embed-english-v3.0", 512)])
def test_invalid_model_or_dimension_is_refused(model: str, dimension: int | None) -> None:
    with pytest.raises(ConfigurationError, match=r"^COHERE_MODEL .*embed-english-v3\.0"):
        CohereEmbedder(KEY, model, dimension=dimension)


def test_fingerprint_differs_by_model_and_dimension() -> None:
    embedders = [
        CohereEmbedder(KEY),
        CohereEmbedder(KEY, "embed-multilingual-v3.0"),
        CohereEmbedder(KEY, "embed-v4.0"),
        CohereEmbedder(KEY, "embed-v4.0", dimension=512),
    ]
    assert len({embedder.fingerprint.digest for embedder in embedders}) == 4
    assert CohereEmbedder("other-key", base_url="http://gateway").fingerprint == embedders[0].fingerprint


async def test_probe_checks_key_and_model_without_embedding(stub: EmbeddingStub) -> None:
    good = CohereEmbedder(KEY, base_url=stub.url)
    await good.probe()
    assert [(request.method, request.path) for request in stub.received] == [("GET", "/v1/models/embed-english-v3.0")]
    bad_key = CohereEmbedder("wrong", base_url=stub.url)
    with pytest.raises(EmbeddingError, match=r"^COHERE_API_KEY was refused by Cohere\.$"):
        await bad_key.probe()
    not_served = CohereEmbedder(KEY, "embed-v9", stub.url, dimension=1024)
    with pytest.raises(EmbeddingError, match="Cohere does not serve the model embed-v9"):
        await not_served.probe()
    for embedder in (good, bad_key, not_served):
        await embedder.close()


async def test_wrong_key_is_reported_and_not_retried(stub: EmbeddingStub) -> None:
    embedder = CohereEmbedder("wrong", base_url=f"{stub.url}/")
    with pytest.raises(EmbeddingError, match=r"^COHERE_API_KEY was refused by Cohere\.$") as caught:
        await embedder.embed_query("one")
    assert not caught.value.retryable
    assert len(stub.received) == 1
    await embedder.close()


async def test_only_the_failed_batch_is_sent_again(cohere: CohereEmbedder, stub: EmbeddingStub) -> None:
    stub.play(status(500))
    vectors = await cohere.embed_passages([f"text {number}" for number in range(97)])
    assert np.isfinite(vectors).all()
    assert len(stub.received) == 3
