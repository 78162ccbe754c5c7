"""From settings to engines: which engine each part gets, why, and their opening and closing.

Owns the choice. Engines are imported only when chosen, because vendors' clients are slow to import: searching and
ingesting need no language model and no database. Nothing here connects: engines do so when they are first used.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from chapterverse.config import OPENAI_URL, RETRIEVAL_SECONDS, Settings
from chapterverse.embeddings import Embedder
from chapterverse.embeddings.memory import RememberingEmbedder
from chapterverse.errors import ConfigurationError
from chapterverse.health import Dependency, Remote
from chapterverse.index import Index
from chapterverse.services import Engines, Services

if TYPE_CHECKING:
    from chapterverse.agent import LanguageModel
    from chapterverse.database import Conversations
    from chapterverse.grounding import Judge


@asynccontextmanager
async def open_engines(settings: Settings) -> AsyncIterator[Engines]:
    """What finding passages needs, closed at the end."""
    async with AsyncExitStack() as closing:
        embedder, embedder_why = choose_embedder(settings)
        closing.push_async_callback(embedder.close)
        index, index_why = choose_index(settings)
        closing.push_async_callback(index.close)
        dependencies = (
            Dependency("qdrant", index.engine, index_why, index.probe, True, remote=remote_index(settings)),
            Dependency(
                "embeddings", embedder.engine, embedder_why, embedder.probe, True, "cohere", remote_embedder(settings)
            ),
        )
        yield Engines(settings, embedder, index, dependencies)


@asynccontextmanager
async def open_services(settings: Settings, *, at_once: bool = False) -> AsyncIterator[Services]:
    """What answering needs, closed at the end. `at_once` starts index and database while the language model is still
    being imported, for a server, which will need them; else they start with the first question."""
    async with AsyncExitStack() as closing:
        engines = await closing.enter_async_context(open_engines(settings))
        conversations, database, database_why = choose_conversations(settings, closing)
        closing.push_async_callback(conversations.close)
        if at_once:
            await closing.enter_async_context(_starting(engines.index.probe(), conversations.probe()))
        embedder = RememberingEmbedder(engines.embedder)
        # In a thread, so that what starts meanwhile is attended to.
        model, model_why = await asyncio.to_thread(choose_model, settings, embedder)
        closing.push_async_callback(model.close)
        dependencies = (
            *engines.dependencies,
            Dependency("llm", model.engine, model_why, model.probe, True, "gemini", remote_model(settings)),
            Dependency(
                "database", database, database_why, conversations.probe, False, remote=remote_database(settings)
            ),
        )
        judge = open_judge(closing)
        yield Services(settings, embedder, engines.index, dependencies, model, conversations, judge)


@asynccontextmanager
async def _starting(*probes: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let engines start in the background. One that cannot will say so when it is asked something."""
    starts = [asyncio.create_task(probe) for probe in probes]
    try:
        yield
    finally:
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)


def choose_embedder(settings: Settings) -> tuple[Embedder, str]:
    """The embedding engine and why it is this one."""
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
    from chapterverse.embeddings.local import LocalEmbedder

    return LocalEmbedder(), why


def choose_index(settings: Settings) -> tuple[Index, str]:
    """The vector engine and why it is this one."""
    if settings.qdrant_url:
        from chapterverse.index.server import QdrantIndex, Spread

        return QdrantIndex(
            url=settings.qdrant_url,
            api_key=settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None,
            collection=settings.qdrant_collection_name,
            timeout=RETRIEVAL_SECONDS,
            spread=Spread(settings.qdrant_shards, settings.qdrant_replicas),
        ), "QDRANT_URL is set"
    from chapterverse.index.edge import EdgeIndex

    return EdgeIndex(settings.chapterverse_home / "index"), "QDRANT_URL is not set"


def choose_model(settings: Settings, embedder: Embedder) -> "tuple[LanguageModel, str]":
    """The language model and why it is this one."""
    from chapterverse import agent

    if settings.gemini_api_key:
        key = settings.gemini_api_key.get_secret_value()
        return agent.open_gemini(key, settings.gemini_model, settings.gemini_base_url), "GEMINI_API_KEY is set"
    if settings.openai_api_key:
        key = settings.openai_api_key.get_secret_value()
        return agent.open_openai(key, settings.openai_model, settings.openai_base_url), "OPENAI_API_KEY is set"
    return agent.open_extractive(embedder), "neither GEMINI_API_KEY nor OPENAI_API_KEY is set"


def choose_conversations(settings: Settings, closing: AsyncExitStack) -> "tuple[Conversations, str, str]":
    """Where conversations are kept, in words, and why there. The embedded server stops after its last user left."""
    from chapterverse.database import Conversations

    if settings.database_url:
        return Conversations(settings.database_url.get_secret_value()), "Postgres", "DATABASE_URL is set"
    from chapterverse.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(settings.chapterverse_home / "postgres")
    closing.push_async_callback(postgres.stop)
    return Conversations(postgres.start), "Postgres, embedded", "DATABASE_URL is not set"


def open_judge(closing: AsyncExitStack) -> "Judge":
    """The rules, with the trained verifier for a second opinion. Its weights are read when they are first needed."""
    from chapterverse.grounding import Verifier
    from chapterverse.trained.cross_encoder import CrossEncoder

    encoder = CrossEncoder("verifier")
    closing.callback(encoder.close)
    return Verifier(encoder)


# ── which server each engine asks, where it is one that other hosts ask as well ──────────────────────────────────────


def remote_embedder(settings: Settings) -> Remote | None:
    """The service of embeddings; None where they are made here."""
    match _embedding_engine(settings)[0]:
        case "cohere":
            return Remote(settings.cohere_base_url, _secret(settings.cohere_api_key), settings.cohere_model)
        case "openai":
            return Remote(settings.openai_base_url, _secret(settings.openai_api_key), settings.openai_embedding_model)
    return None


def remote_index(settings: Settings) -> Remote | None:
    """The Qdrant server; None where the index is embedded."""
    if not settings.qdrant_url:
        return None
    return Remote(settings.qdrant_url, _secret(settings.qdrant_api_key), settings.qdrant_collection_name)


def remote_model(settings: Settings) -> Remote | None:
    """The service of the language model; None where answers are extracted here."""
    if settings.gemini_api_key:
        return Remote(settings.gemini_base_url, _secret(settings.gemini_api_key), settings.gemini_model)
    if settings.openai_api_key:
        return Remote(settings.openai_base_url, _secret(settings.openai_api_key), settings.openai_model)
    return None


def remote_database(settings: Settings) -> Remote | None:
    """The Postgres server; None where it is embedded."""
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
