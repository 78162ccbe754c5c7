"""One suite for every embedding engine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import numpy as np
import pytest
import pytest_asyncio

from chapterverse.embeddings import Embedder, Vectors
from chapterverse.embeddings.cohere import CohereEmbedder
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.embeddings.openai import OpenAIEmbedder
from chapterverse.testing import HashEmbedder
from tests.embeddings.stub import HANG, KEY, EmbeddingStub

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How does the robot arm measure force?"
NEAR = "The robot arm uses a strain gauge to measure force at the wrist."
FAR = "Bread rises because yeast turns sugar into gas."
MAKERS: dict[str, Callable[[str], Embedder]] = {
    "local": lambda _: LocalEmbedder(),
    "cohere": lambda url: CohereEmbedder(KEY, base_url=url),
    "openai": lambda url: OpenAIEmbedder(KEY, base_url=f"{url}/v1"),
    "hash": lambda _: HashEmbedder(),
}


@dataclass(frozen=True)
class Engine:
    name: str
    embedder: Embedder
    make: Callable[[], Embedder]
    stub: EmbeddingStub


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MAKERS)
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    async with EmbeddingStub() as stub:
        engine = Engine(request.param, MAKERS[request.param](stub.url), lambda: MAKERS[request.param](stub.url), stub)
        yield engine
        await engine.embedder.close()


@pytest.fixture
def engine(shared: Engine) -> Engine:
    shared.stub.reset()
    return shared


@pytest.fixture
def embedder(engine: Engine) -> Embedder:
    return engine.embedder


def assert_unit(vectors: Vectors) -> None:
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1.0, atol=1e-5)


async def test_query_vector_has_unit_length(embedder: Embedder) -> None:
    vector = await embedder.embed_query(QUESTION)
    assert vector.shape == (embedder.fingerprint.dimension,)
    assert_unit(vector)


async def test_passage_vectors_have_unit_length(embedder: Embedder) -> None:
    vectors = await embedder.embed_passages([NEAR, FAR, QUESTION])
    assert vectors.shape == (3, embedder.fingerprint.dimension)
    assert_unit(vectors)


async def test_no_passages_give_no_rows_and_no_call(engine: Engine) -> None:
    vectors = await engine.embedder.embed_passages([])
    assert vectors.shape == (0, engine.embedder.fingerprint.dimension)
    assert vectors.dtype == np.float32
    assert engine.stub.received == []


async def test_the_same_text_has_the_same_vector(embedder: Embedder) -> None:
    once, again = await embedder.embed_passages([NEAR, NEAR])
    np.testing.assert_array_equal(once, again)
    np.testing.assert_array_equal(await embedder.embed_query(QUESTION), await embedder.embed_query(QUESTION))


async def test_passage_has_the_same_vector_alone_and_in_a_batch(embedder: Embedder) -> None:
    together = await embedder.embed_passages([FAR, NEAR])
    alone = await embedder.embed_passages([NEAR])
    np.testing.assert_allclose(together[1], alone[0], atol=1e-5)


async def test_order_is_kept_over_many_passages(embedder: Embedder) -> None:
    texts = [f"Lesson {number} of the book" for number in range(300)]
    vectors = await embedder.embed_passages(texts)
    assert vectors.shape == (300, embedder.fingerprint.dimension)
    assert_unit(vectors)
    for number in (0, 95, 96, 97, 255, 256, 299):  # where a batch begins or ends
        (alone,) = await embedder.embed_passages([texts[number]])
        np.testing.assert_allclose(vectors[number], alone, atol=1e-5)


async def test_similar_text_is_nearer(embedder: Embedder) -> None:
    question = await embedder.embed_query(QUESTION)
    near, far = await embedder.embed_passages([NEAR, FAR])
    assert question @ near > question @ far + 0.2


async def test_very_long_text_is_truncated(embedder: Embedder) -> None:
    start = f"{NEAR} " * 2000
    vectors = await embedder.embed_passages([start + FAR * 100, start])
    assert_unit(vectors)
    np.testing.assert_allclose(vectors[0], vectors[1], atol=0.05)  # text past the window changes little
    assert_unit(await embedder.embed_query("word " * 20_000))


@pytest.mark.parametrize(
    "text",
    [
        "Ünïcödé: Ελληνικά, 日本語, עברית",
        "🦾🤖",
        "👩‍👩‍👧‍👦 family",
        "a\x00b",
        "half a pair: \ud83e",
        "-",
        " \n ",
        "e\u0301",
    ],
    ids=ascii,
)
async def test_any_text_has_a_vector(embedder: Embedder, text: str) -> None:
    assert_unit(await embedder.embed_query(text))
    assert_unit(await embedder.embed_passages(["plain", text]))


async def test_the_fingerprint_is_stable_and_complete(engine: Engine) -> None:
    fingerprint = engine.embedder.fingerprint
    other = engine.make()
    assert other.fingerprint == fingerprint
    await other.close()
    assert fingerprint.model
    assert fingerprint.dimension > 0
    assert len(fingerprint.digest) >= 12
    assert engine.embedder.window > 0
    assert engine.embedder.engine


async def test_fingerprints_differ_between_engines() -> None:
    embedders = [make("http://localhost") for make in MAKERS.values()]
    assert len({embedder.fingerprint for embedder in embedders}) == len(MAKERS)
    await asyncio.gather(*(embedder.close() for embedder in embedders))


async def test_probe_succeeds_without_embedding(engine: Engine) -> None:
    await engine.embedder.probe()
    assert not any(request.texts for request in engine.stub.received)


async def test_closing_twice_is_allowed(engine: Engine) -> None:
    fresh = engine.make()
    await fresh.embed_query(QUESTION)
    await fresh.close()
    await fresh.close()


async def test_embedder_can_be_used_concurrently(embedder: Embedder) -> None:
    texts = [f"question number {number}" for number in range(20)]
    one_by_one = [await embedder.embed_query(text) for text in texts]
    at_once = await asyncio.gather(*(embedder.embed_query(text) for text in texts), embedder.embed_passages(texts))
    for lone, shared in zip(one_by_one, at_once[:-1], strict=True):
        np.testing.assert_allclose(lone, shared, atol=1e-5)
    assert at_once[-1].shape == (20, embedder.fingerprint.dimension)


async def test_embedder_is_usable_after_cancellation(engine: Engine) -> None:
    engine.stub.play(forever=HANG)
    task = asyncio.create_task(engine.embedder.embed_passages([f"{NEAR} {number}" for number in range(300)]))
    if engine.name in ("cohere", "openai"):
        await engine.stub.wait_for(requests=2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await engine.stub.wait_for_silence()  # the running calls were closed
    engine.stub.play()
    assert_unit(await engine.embedder.embed_query(QUESTION))


async def test_local_model_finds_meaning_without_shared_words() -> None:
    embedder = LocalEmbedder()
    question = await embedder.embed_query("How can I stop paying each month?")
    near, far = await embedder.embed_passages(
        ["To cancel your subscription, open the billing settings.", "The cat slept on the warm roof all afternoon."]
    )
    assert question @ near > question @ far + 0.2
    await embedder.close()
