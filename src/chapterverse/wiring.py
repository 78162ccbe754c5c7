"""Chooses the engines by the settings, and opens and closes them.

An engine is imported only if it is chosen, because vendors' clients are slow to import. Nothing connects here: engines
connect on first use.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from chapterverse import plugins
from chapterverse.book import Fingerprint
from chapterverse.embeddings import Embedder
from chapterverse.embeddings.cache import CachingEmbedder
from chapterverse.errors import ConfigurationError
from chapterverse.health import Dependency, Remote
from chapterverse.index import Index
from chapterverse.services import Engines, Services
from chapterverse.settings import OPENAI_URL, RETRIEVAL_SECONDS, Settings

if TYPE_CHECKING:
    from chapterverse.conversations.store import Conversations
    from chapterverse.evidence.judge import Judge, ModelJudge
    from chapterverse.writing import Writer


@asynccontextmanager
async def open_engines(settings: Settings) -> AsyncIterator[Engines]:
    """Open the engines for searching; they are closed at the end."""
    async with AsyncExitStack() as closing:
        embedder, embedder_why = choose_embedder(settings)
        closing.push_async_callback(embedder.close)
        index, index_why = choose_index(settings, embedder.fingerprint)
        closing.push_async_callback(index.close)
        dependencies = (
            Dependency(
                "qdrant",
                index.engine,
                index_why,
                index.probe,
                vital=True,
                remote=remote_index(settings),
                public="Qdrant server" if settings.qdrant_url else "Qdrant Edge, embedded",
            ),
            Dependency(
                "embeddings",
                embedder.engine,
                embedder_why,
                embedder.probe,
                vital=True,
                also_as="cohere" if _embedding_engine(settings)[0] == "cohere" else "",
                remote=remote_embedder(settings),
            ),
        )
        yield Engines(settings, embedder, index, dependencies)


@asynccontextmanager
async def open_services(settings: Settings, *, at_once: bool = False) -> AsyncIterator[Services]:
    """Open the services for answering; they are closed at the end. `at_once`, for servers: start index and database
    while the language model's client is imported; otherwise they start with the first question."""
    async with AsyncExitStack() as closing:
        engines = await closing.enter_async_context(open_engines(settings))
        conversations, database, database_why = choose_conversations(settings, closing)
        closing.push_async_callback(conversations.close)
        if at_once:
            await closing.enter_async_context(_starting(engines.index.probe(), conversations.probe()))
        embedder = CachingEmbedder(engines.embedder)
        # In a thread, so that the event loop can start the others.
        writer, writer_why = await asyncio.to_thread(choose_writer, settings)
        closing.push_async_callback(writer.close)
        dependencies = (
            *engines.dependencies,
            Dependency(
                "llm",
                writer.engine,
                writer_why,
                writer.probe,
                vital=True,
                also_as="gemini" if settings.gemini_api_key and settings.writer == "auto" else "",
                remote=remote_model(settings) if settings.writer == "auto" else None,
                public=writer.name,
            ),
            Dependency(
                "database", database, database_why, conversations.probe, False, remote=remote_database(settings)
            ),
        )
        judge, judging = watched_judge(settings, closing)
        yield Services(settings, embedder, engines.index, (*dependencies, *judging), writer, conversations, judge)


async def check_engines(settings: Settings) -> None:
    """Choose every engine, which reports invalid settings by name. Nothing connects. The built-in writer is not chosen:
    its settings are validated already, and importing it is slow."""
    async with AsyncExitStack() as closing:
        await closing.enter_async_context(open_engines(settings))
        choose_conversations(settings, closing)
        watched_judge(settings, closing)
        if settings.writer != "auto":
            writer, _ = choose_writer(settings)
            closing.push_async_callback(writer.close)


@asynccontextmanager
async def _starting(*probes: Coroutine[Any, Any, str | None]) -> AsyncIterator[None]:
    """Start engines in the background. A failure is reported by the first call that uses the engine."""
    starts = [asyncio.create_task(probe) for probe in probes]
    try:
        yield
    finally:
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)


def choose_embedder(settings: Settings) -> tuple[Embedder, str]:
    """The embedding engine and the reason for it."""
    engine, why = _embedding_engine(settings)
    if engine == "cohere":
        from chapterverse.embeddings.cohere import CohereEmbedder

        if settings.cohere_api_key is None:
            raise ConfigurationError("COHERE_API_KEY: must be set when EMBEDDINGS is cohere")
        key = settings.cohere_api_key.get_secret_value()
        return CohereEmbedder(key, settings.cohere_model, settings.cohere_base_url), why
    if engine == "openai":
        from chapterverse.embeddings.openai import OpenAIEmbedder

        if settings.openai_api_key is None:
            raise ConfigurationError("OPENAI_API_KEY: must be set when EMBEDDINGS is openai")
        return OpenAIEmbedder(
            settings.openai_api_key.get_secret_value(),
            settings.openai_embedding_model,
            settings.openai_base_url,
            settings.openai_embedding_dimension,
        ), why
    if engine == "local":
        from chapterverse.embeddings.local import LocalEmbedder

        return LocalEmbedder(), why
    added: Embedder = plugins.load("embedder", engine)(settings)
    return added, why


def choose_index(settings: Settings, fingerprint: Fingerprint) -> tuple[Index, str]:
    """The vector engine and the reason for it. `fingerprint` is that of the embedder."""
    if settings.qdrant_url:
        from chapterverse.index.foreign import ForeignCollection, ServerIndex
        from chapterverse.index.server import QdrantIndex, Spread
        from chapterverse.ingestion.prompt_injection import flags_of

        own = QdrantIndex(
            url=settings.qdrant_url,
            api_key=settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None,
            collection=settings.qdrant_collection_name,
            timeout=RETRIEVAL_SECONDS,
            spread=Spread(settings.qdrant_shards, settings.qdrant_replicas),
        )
        plain = settings.qdrant_api_key and settings.qdrant_url.startswith("http://")
        why = "QDRANT_URL is set" + (", without https: QDRANT_API_KEY is sent as plain text" if plain else "")
        foreign = ForeignCollection(own.client, settings.qdrant_collection_name, fingerprint, flags_of)
        return ServerIndex(own, foreign), why
    from chapterverse.index.edge import EdgeIndex

    return EdgeIndex(settings.chapterverse_home / "index"), "QDRANT_URL is not set"


def choose_writer(settings: Settings) -> "tuple[Writer, str]":
    """The writer and the reason for it."""
    if settings.writer != "auto":
        added: Writer = plugins.load("writer", settings.writer)(settings)
        return added, f"WRITER is {settings.writer}"
    if not (settings.gemini_api_key or settings.openai_api_key):
        from chapterverse.writing.excerpt import ExcerptWriter

        return ExcerptWriter(), "neither GEMINI_API_KEY nor OPENAI_API_KEY is set"
    from chapterverse.writing import prompts
    from chapterverse.writing.agent import WritingOptions, open_model

    options = WritingOptions(
        max_calls=settings.agent_max_calls,
        temperature=settings.agent_temperature,
        max_tokens=settings.agent_max_tokens,
        prompt=settings.agent_prompt.read_text("utf-8") if settings.agent_prompt else prompts.ANSWER,
    )
    if settings.gemini_api_key:
        key = settings.gemini_api_key.get_secret_value()
        return open_model(
            "gemini", key, settings.gemini_model, settings.gemini_base_url, options
        ), "GEMINI_API_KEY is set"
    key = _secret(settings.openai_api_key)
    return open_model("openai", key, settings.openai_model, settings.openai_base_url, options), "OPENAI_API_KEY is set"


def watched_judge(settings: Settings, closing: AsyncExitStack) -> "tuple[Judge | None, tuple[Dependency, ...]]":
    """The judge and its dependency for health checks. It is not vital: without it answers are quotes of the book."""
    if (judge := choose_judge(settings)) is None:
        return None, ()
    closing.push_async_callback(judge.close)
    own = settings.judge_model or settings.judge_base_url
    why = "JUDGE_MODEL or JUDGE_BASE_URL is set" if own else "the model that writes judges, too"
    remote = Remote(judge.base_url, judge.api_key, f"judge {judge.name}")
    engine = f"{judge.name} at {urlsplit(judge.base_url).hostname}"
    return judge, (Dependency("judge", engine, why, judge.probe, vital=False, remote=remote, public=judge.name),)


def choose_judge(settings: Settings) -> "ModelJudge | None":
    """The judge: JUDGE_MODEL or the writing model; None if no model is configured or JUDGE is off."""
    writing = remote_model(settings)
    url = settings.judge_base_url or (writing.url if writing else "")
    model = settings.judge_model or (writing.part if writing else "")
    if settings.judge == "off" or not (url or model):
        return None
    if not (url and model):
        missing, given = ("JUDGE_MODEL", "JUDGE_BASE_URL") if url else ("JUDGE_BASE_URL", "JUDGE_MODEL")
        raise ConfigurationError(f"{missing}: must be set when {given} is set and no writing model is")
    from chapterverse.evidence.chat_model import request_fields
    from chapterverse.evidence.judge import ModelJudge

    own_key = _secret(settings.judge_api_key)
    # A key is sent only to the server that it was configured for.
    key = own_key or (writing.key if writing and url.rstrip("/") == writing.url.rstrip("/") else "")
    own = own_key or settings.judge_model or settings.judge_base_url
    prefix = "JUDGE" if own else "GEMINI" if settings.gemini_api_key else "OPENAI"
    return ModelJudge(model, url, key, request_fields(model, url), settings=prefix)


def choose_conversations(settings: Settings, closing: AsyncExitStack) -> "tuple[Conversations, str, str]":
    """The store of conversations, its name, and the reason for it. The embedded server stops with its last user."""
    from chapterverse.conversations.store import Conversations

    if settings.database_url:
        return Conversations(settings.database_url.get_secret_value()), "Postgres", "DATABASE_URL is set"
    from chapterverse.conversations.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(settings.chapterverse_home / "postgres", programs=settings.pg_bin)
    closing.push_async_callback(postgres.stop)
    why = "PG_BIN is set, and DATABASE_URL is not" if settings.pg_bin else "DATABASE_URL is not set"
    return Conversations(postgres.start, postgres.lost), "Postgres, embedded", why


# ── remote servers, which other hosts may share ──────────────────────────────────────────────────────────────────────


def remote_embedder(settings: Settings) -> Remote | None:
    """The embedding service; None if the model is local."""
    match _embedding_engine(settings)[0]:
        case "cohere":
            return Remote(settings.cohere_base_url, _secret(settings.cohere_api_key), settings.cohere_model)
        case "openai":
            return Remote(settings.openai_base_url, _secret(settings.openai_api_key), settings.openai_embedding_model)
    return None


def remote_index(settings: Settings) -> Remote | None:
    """The Qdrant server; None if the index is embedded."""
    if not settings.qdrant_url:
        return None
    return Remote(settings.qdrant_url, _secret(settings.qdrant_api_key), settings.qdrant_collection_name)


def remote_model(settings: Settings) -> Remote | None:
    """The language model's service; None if answers are excerpts."""
    if settings.gemini_api_key:
        return Remote(settings.gemini_base_url, _secret(settings.gemini_api_key), settings.gemini_model)
    if settings.openai_api_key:
        return Remote(settings.openai_base_url, _secret(settings.openai_api_key), settings.openai_model)
    return None


def remote_database(settings: Settings) -> Remote | None:
    """The Postgres server; None if it is embedded."""
    return Remote(_secret(settings.database_url)) if settings.database_url else None


def _secret(value: SecretStr | None) -> str:
    return value.get_secret_value() if value else ""


def _embedding_engine(settings: Settings) -> tuple[str, str]:
    if settings.embeddings != "auto":
        return settings.embeddings, f"EMBEDDINGS is {settings.embeddings}"
    if settings.cohere_api_key:
        return "cohere", "COHERE_API_KEY is set"
    if settings.openai_api_key and settings.openai_base_url == OPENAI_URL:
        return "openai", "OPENAI_API_KEY is set"
    if settings.openai_api_key:
        return "local", "OPENAI_BASE_URL is not OpenAI's, and EMBEDDINGS does not say that it serves embeddings"
    return "local", "neither COHERE_API_KEY nor OPENAI_API_KEY is set"
