"""Failures of embedding services, with both engines that use `remote`, against a real server on loopback."""

import asyncio
import inspect
import logging
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import numpy as np
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.embeddings import Embedder
from chapterverse.embeddings.cohere import CohereEmbedder
from chapterverse.embeddings.openai import OpenAIEmbedder
from chapterverse.embeddings.remote import (
    DEFAULT_LIMITS,
    HTTP_FAULTS,
    EmbeddingService,
    Limits,
    Patience,
    Wire,
    batches,
    seconds_until,
    translate,
)
from chapterverse.errors import ConfigurationError, EmbeddingError
from tests.embeddings import stub as stubs
from tests.embeddings.stub import KEY, EmbeddingStub, Fault, slow, status

QUICK = Limits(Patience(5, 10), Patience(5, 10), Patience(5, 5, tries=1), backoff=0.01)  # generous on a busy machine
IMPATIENT = Limits(Patience(0.3, 0.75), Patience(0.3, 0.75), Patience(0.3, 0.3, tries=1), backoff=0.01)
SOON = 10.0  # seconds that a busy machine may need instead of one; a hung service never answers
SERVICE = EmbeddingService("cohere", "Cohere", "http://localhost", "embed-english-v3.0", 1024, KEY)

# fault, words of the message, whether it is tried again, the status in the details
FAULTS = [
    (status(400), "refused the request (HTTP 400)", False, 400),
    (status(401), "_API_KEY was refused by", False, 401),
    (status(403), "_API_KEY was refused by", False, 403),
    (status(404), "does not serve the model", False, 404),
    (status(413), "refused the request (HTTP 413)", False, 413),
    (status(422), "refused the request (HTTP 422)", False, 422),
    (status(302), "refused the request (HTTP 302)", False, 302),
    (status(408), "failed (HTTP 408)", True, 408),
    (status(409), "failed (HTTP 409)", True, 409),
    (status(429), "accepts no more requests", True, 429),
    (status(500), "failed (HTTP 500)", True, 500),
    (status(503), "failed (HTTP 503)", True, 503),
    (stubs.DROP, "did not complete its response", True, None),
    (stubs.TRUNCATED, "did not complete its response", True, None),
    (stubs.GARBAGE, "cannot be read", True, 200),
    (stubs.EMPTY, "cannot be read", True, 200),
    (stubs.STRANGE, "cannot be read", True, 200),
    (stubs.NOT_A_NUMBER, "cannot be read", True, 200),
    (stubs.WRONG_COUNT, "one vector for each of 2 texts", True, 200),
    (stubs.NULL, "cannot be normalised", True, 200),
    (stubs.HUGE, "cannot be normalised", True, 200),
    (stubs.ZERO, "cannot be normalised", True, 200),
    (stubs.WRONG_DIMENSION, "dimensions for the model", False, 200),
]
IDS = [f"{fault.kind} {fault.status}" for fault, *_ in FAULTS]


def make(engine: str, url: str, limits: Limits = QUICK) -> Embedder:
    if engine == "cohere":
        return CohereEmbedder(KEY, base_url=url, limits=limits)
    return OpenAIEmbedder(KEY, base_url=f"{url}/v1", limits=limits)


@pytest.fixture(scope="module", params=["cohere", "openai"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder(engine: str, server: EmbeddingStub) -> AsyncIterator[Embedder]:
    embedder = make(engine, server.url)
    yield embedder
    await embedder.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def impatient(engine: str, server: EmbeddingStub) -> AsyncIterator[Embedder]:
    embedder = make(engine, server.url, IMPATIENT)
    yield embedder
    await embedder.close()


@pytest.mark.parametrize(("fault", "words", "retryable", "code"), FAULTS, ids=IDS)
async def test_every_fault_is_an_embedding_error(
    embedder: Embedder, stub: EmbeddingStub, fault: Fault, words: str, retryable: bool, code: int | None
) -> None:
    stub.play(forever=fault)
    with pytest.raises(EmbeddingError) as caught:
        await embedder.embed_passages(["one", "two"])
    assert words in caught.value.message
    assert caught.value.retryable is retryable
    provider = "cohere" if isinstance(embedder, CohereEmbedder) else "openai"
    assert caught.value.details == {"provider": provider, "status": code}
    assert len(stub.received) == (3 if retryable else 1)


@pytest.mark.parametrize(("fault", "retryable"), [(fault, yes) for fault, _, yes, _ in FAULTS], ids=IDS)
async def test_temporary_fault_is_retried(
    embedder: Embedder, stub: EmbeddingStub, fault: Fault, retryable: bool
) -> None:
    stub.play(fault, fault)
    if not retryable:
        with pytest.raises(EmbeddingError):
            await embedder.embed_passages(["one", "two"])
        return
    assert (await embedder.embed_passages(["one", "two"])).shape == (2, embedder.fingerprint.dimension)
    assert len(stub.received) == 3


async def test_question_is_retried(embedder: Embedder, stub: EmbeddingStub) -> None:
    stub.play(status(503), stubs.DROP)
    assert (await embedder.embed_query("one")).shape == (embedder.fingerprint.dimension,)
    assert len(stub.received) == 3


async def test_hung_service_fails_at_the_deadline(impatient: Embedder, stub: EmbeddingStub) -> None:
    stub.play(forever=stubs.HANG)
    begin = time.monotonic()
    with pytest.raises(EmbeddingError, match="did not answer in time") as caught:
        await impatient.embed_query("one")
    assert time.monotonic() - begin < SOON
    assert caught.value.retryable
    assert 2 <= len(stub.received) <= 3
    await stub.wait_for_silence()
    assert stub.abandoned == len(stub.received)  # the calls were closed


async def test_call_ends_at_the_deadline(engine: str, stub: EmbeddingStub) -> None:
    assert DEFAULT_LIMITS.query.deadline < 5  # the time for the whole retrieval of a question
    embedder = make(engine, stub.url, Limits(query=Patience(call=60, deadline=0.2)))
    stub.play(forever=stubs.HANG)
    begin = time.monotonic()
    with pytest.raises(EmbeddingError, match="in time"):
        await embedder.embed_query("one")
    assert time.monotonic() - begin < SOON
    await embedder.close()


async def test_slowly_sent_answer_fails_at_the_deadline(impatient: Embedder, stub: EmbeddingStub) -> None:
    stub.play(forever=stubs.DRIP)
    begin = time.monotonic()
    with pytest.raises(EmbeddingError, match="in time"):
        await impatient.embed_passages(["one"])
    assert time.monotonic() - begin < SOON


async def test_temporary_hang_is_retried(engine: str, stub: EmbeddingStub) -> None:
    embedder = make(engine, stub.url, Limits(passages=Patience(call=0.3, deadline=10), backoff=0.01))
    stub.play(stubs.HANG)
    assert len(await embedder.embed_passages(["one"])) == 1
    await embedder.close()


async def test_unreachable_server_is_a_retryable_error(engine: str) -> None:
    async with EmbeddingStub() as gone:
        pass
    embedder = make(engine, gone.url)
    for call in (embedder.embed_query("one"), embedder.embed_passages(["one"]), embedder.probe()):
        with pytest.raises(EmbeddingError, match="cannot be reached") as caught:
            await call
        assert caught.value.retryable
    await embedder.close()


async def test_retry_waits_for_retry_after(embedder: Embedder, stub: EmbeddingStub) -> None:
    stub.play(status(429, "0.3"))
    await embedder.embed_query("one")
    first, second = stub.received
    assert second.at - first.at >= 0.3


async def test_retry_after_may_be_a_date(embedder: Embedder, stub: EmbeddingStub) -> None:
    stub.play(status(503, format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)))
    with pytest.raises(EmbeddingError) as caught:
        await embedder.embed_query("one")
    assert caught.value.retry_after == pytest.approx(300, abs=5)


async def test_no_retry_if_retry_after_is_later_than_the_deadline(embedder: Embedder, stub: EmbeddingStub) -> None:
    stub.play(forever=status(429, "30"))
    begin = time.monotonic()
    with pytest.raises(EmbeddingError) as caught:
        await embedder.embed_query("one")
    assert time.monotonic() - begin < SOON
    assert caught.value.retry_after == 30
    assert caught.value.retryable
    assert len(stub.received) == 1


async def test_concurrency_is_limited_and_order_is_kept(engine: str, stub: EmbeddingStub) -> None:
    embedder = make(engine, stub.url, Limits(passages=QUICK.passages, concurrency=3))
    texts = [f"text {number}" for number in range(256 * 5)]
    stub.play(slow(0.2), slow(0.1), forever=slow(0.01))  # the first batches come back last
    vectors = await embedder.embed_passages(texts)
    assert stub.most_at_once == 3
    for number in (0, 96, 256, 700, 1279):
        np.testing.assert_allclose(vectors[number], await embedder.embed_query(texts[number]), atol=1e-6)
    await embedder.close()


async def test_question_does_not_wait_for_passages(embedder: Embedder, stub: EmbeddingStub) -> None:
    stub.play(*[stubs.HANG] * 4)
    passages = asyncio.create_task(embedder.embed_passages(["text"] * 256 * 8))
    await stub.wait_for(requests=4)
    await asyncio.wait_for(embedder.embed_query("one"), timeout=30)
    assert not passages.done()
    passages.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passages


async def test_first_refusal_cancels_all_other_calls(embedder: Embedder, stub: EmbeddingStub) -> None:
    stub.play(status(401), forever=stubs.HANG)
    with pytest.raises(EmbeddingError, match="was refused") as caught:
        await asyncio.wait_for(embedder.embed_passages(["text"] * 256 * 20), timeout=30)
    assert not isinstance(caught.value.__cause__, ExceptionGroup)
    await stub.wait_for_silence()
    assert len(stub.received) < 20


@pytest.mark.parametrize("fault", [status(401), status(429), status(500), stubs.HANG], ids=lambda fault: fault.kind)
async def test_probe_reports_a_fault_without_retry(impatient: Embedder, stub: EmbeddingStub, fault: Fault) -> None:
    stub.play(forever=fault)
    begin = time.monotonic()
    with pytest.raises(EmbeddingError):
        await impatient.probe()
    assert time.monotonic() - begin < SOON
    assert len(stub.received) == 1


async def test_key_is_not_in_errors_reprs_or_logs(
    impatient: Embedder, stub: EmbeddingStub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = [repr(impatient), str(impatient), repr(vars(impatient)), repr(SERVICE)]
    for fault in [*(fault for fault, *_ in FAULTS), stubs.HANG]:
        stub.play(forever=fault)
        with pytest.raises(EmbeddingError) as caught:
            await impatient.embed_passages(["one", "two"])
        error = caught.value
        shown += [str(error), repr(error), repr(error.details), "".join(traceback.format_exception(error))]
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in stub.received)
    assert "Try 2 of 3" in caplog.text
    assert KEY not in "\n".join(shown) + caplog.text


@pytest.mark.parametrize("key", ["secret\nkey", "secret key", "secretkey’", "secret\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^COHERE_API_KEY ") as caught:
        CohereEmbedder(key)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("url", ["", "localhost:11434/v1", "ftp://host", "http://", "http://[::1", "http://me:pw@host"])
def test_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^OPENAI_BASE_URL ") as caught:
        OpenAIEmbedder(KEY, base_url=url)
    assert "pw" not in caught.value.message.replace("password", "")


def client_exceptions() -> Iterator[type[Exception]]:
    """Every exception class that the HTTP client defines, exported or not."""
    todo = [kind for _, kind in inspect.getmembers(httpx2, inspect.isclass) if issubclass(kind, Exception)]
    found: set[type[Exception]] = set()
    while todo:
        kind = todo.pop()
        if kind not in found:
            found.add(kind)
            todo += kind.__subclasses__()
    yield from sorted(found, key=lambda kind: kind.__name__)


def test_client_exceptions_finds_the_whole_tree() -> None:
    assert {httpx2.ConnectError, httpx2.InvalidURL, httpx2.StreamConsumed, httpx2.HTTPStatusError} <= {
        *client_exceptions()
    }


@pytest.mark.parametrize("kind", [*client_exceptions(), TimeoutError, OSError, ConnectionResetError])
async def test_every_client_exception_is_translated(
    kind: type[Exception], embedder: Embedder, stub: EmbeddingStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = kind.__new__(kind)  # constructors differ
    assert isinstance(fault, HTTP_FAULTS)
    assert translate(SERVICE, fault).message.startswith("Cohere ")

    async def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(httpx2.AsyncClient, "send", fail)
    with pytest.raises(EmbeddingError) as caught:
        await embedder.embed_query("one")
    assert caught.value.__cause__ is fault


def test_client_exceptions_have_different_messages() -> None:
    assert not translate(SERVICE, httpx2.UnsupportedProtocol("x")).retryable
    assert not translate(SERVICE, httpx2.InvalidURL("x")).retryable
    assert "in time" in translate(SERVICE, httpx2.ReadTimeout("x")).message
    assert "reached" in translate(SERVICE, httpx2.ConnectError("x")).message
    assert "did not complete" in translate(SERVICE, httpx2.RemoteProtocolError("x")).message


NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("5", 5.0),
        ("0.25", 0.25),
        ("-5", 0.0),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 12:00:30 -0000", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("Sun, 15 Nov 99999 12:00:30 GMT", None),
        ("Sun, 15 Nov 2026 12:00:30 +999999999999", None),
    ],
)
def test_seconds_until_parses_retry_after(header: str, seconds: float | None) -> None:
    assert seconds_until(header, NOW) == seconds


@given(st.text())
def test_seconds_until_accepts_any_text(header: str) -> None:
    seconds = seconds_until(header, NOW)
    assert seconds is None or seconds >= 0


@given(
    st.lists(st.text(st.characters(exclude_categories=[]), max_size=30), max_size=40),
    st.integers(1, 7),
    st.integers(4, 20),
    st.integers(20, 60),
)
def test_batches_fit_and_lose_nothing(texts: list[str], most: int, text_bytes: int, call_bytes: int) -> None:
    wire = Wire("", lambda *_: {}, lambda _: [], most, text_bytes, call_bytes)
    made = list(batches(texts, wire))
    sent = [text for batch in made for text in batch]
    assert len(sent) == len(texts)
    for text, short in zip(texts, sent, strict=True):
        whole = text.encode("utf-8", "replace").decode()
        assert whole.startswith(short)
        assert short == whole or text_bytes - 4 < len(short.encode()) <= text_bytes
    for batch in made:
        assert 1 <= len(batch) <= most
        assert sum(len(text.encode()) for text in batch) <= call_bytes
