"""The language models that can be asked: Gemini, any OpenAI-compatible server, and the extractive one.

Owns their addresses, settings, time limits and probes. Nothing here connects before the first question.
"""

import asyncio
import re
from typing import Final
from urllib.parse import urlsplit

import httpx2
from agents import ModelSettings, OpenAIChatCompletionsModel
from openai import AsyncOpenAI, NotFoundError
from openai.types.shared import Reasoning

from chapterverse.agent.completions import CompletionsClient
from chapterverse.agent.failures import VENDOR_FAULTS, Service
from chapterverse.agent.task import LanguageModel
from chapterverse.config import GENERATION_SECONDS, OPENAI_URL
from chapterverse.embeddings import Embedder
from chapterverse.errors import AgentUnavailable, ConfigurationError, EmbeddingError
from chapterverse.extractive import ExtractiveModel, Reader, ReaderPicker
from chapterverse.trained import CrossEncoder
from chapterverse.transcript import Place

PROBE_SECONDS: Final = 2.0
CONNECT_SECONDS: Final = 3.0

_GEMINI = re.compile(r"gemini-(\d+)?")
_THINKS = re.compile(r"(?:gpt-5|o\d)")  # OpenAI's models that refuse a temperature
_NEED_NOT_THINK = re.compile(r"gpt-5\.\d")  # those of them that take tools only while they do not think


def open_gemini(api_key: str, model: str, base_url: str) -> LanguageModel:
    """Gemini through its OpenAI-compatible endpoint."""
    service = Service("Gemini", model, "GEMINI_API_KEY", "GEMINI_MODEL", "GEMINI_BASE_URL")
    return _open(service, _client(service, api_key, base_url), _gemini_settings(model), "tool")


def open_openai(api_key: str, model: str, base_url: str) -> LanguageModel:
    """OpenAI itself, or any server that speaks as it does: Ollama, vLLM, llama.cpp …"""
    own = urlsplit(base_url).hostname == urlsplit(OPENAI_URL).hostname
    name = "OpenAI" if own else f"The language model server at {urlsplit(base_url).hostname}"
    service = Service(name, model, "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL")
    settings = _openai_settings(model) if own else ModelSettings(include_usage=True, temperature=0.0)
    return _open(service, _client(service, api_key, base_url), settings, "tool" if own else "message")


def open_extractive(embedder: Embedder) -> LanguageModel:
    """The model that needs no key: it answers with the book's own sentences."""
    encoder = CrossEncoder("reader")

    async def probe() -> None:
        try:
            await embedder.probe()
            await asyncio.to_thread(encoder.load)
        except EmbeddingError as failure:
            raise AgentUnavailable(f"The extractive model needs the embeddings: {failure.message}") from failure

    async def close() -> None:
        encoder.close()

    return LanguageModel(
        name="extractive",
        engine="the extractive model, which answers with the book's own sentences",
        model=ExtractiveModel(ReaderPicker(embedder, Reader(encoder))),
        passages_in="tool",
        settings=ModelSettings(),
        explain=Service("The extractive model", "extractive", "", "", "").explain,
        probe=probe,
        close=close,
        writes=False,
    )


def _open(service: Service, client: AsyncOpenAI, settings: ModelSettings, place: Place) -> LanguageModel:
    async def probe() -> None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                page = await client.models.list()
            if not isinstance(page.data, list):
                raise TypeError("no list of models")
        except NotFoundError:
            return  # a server without a list of its models is still a server
        except TimeoutError as fault:
            raise service.failure(f"{service.name} did not answer in time.") from fault
        except VENDOR_FAULTS as fault:
            raise service.explain(fault) from fault

    return LanguageModel(
        name=service.model,
        engine=f"{service.model} at {client.base_url.host}",
        model=OpenAIChatCompletionsModel(service.model, client),
        passages_in=place,
        settings=settings,
        explain=service.explain,
        probe=probe,
        close=client.close,
    )


def _client(service: Service, api_key: str, base_url: str) -> AsyncOpenAI:
    key = api_key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigurationError(f"{service.key_variable}: must be plain printable characters")
    # Retries are ours: they know what has been written already and when the answer is due.
    timeout = httpx2.Timeout(GENERATION_SECONDS, connect=CONNECT_SECONDS)
    return CompletionsClient(api_key=key, base_url=base_url, timeout=timeout)


def _gemini_settings(model: str) -> ModelSettings:
    """Gemini 3 loops below its own temperature, and thinks long unless told otherwise. Unknown fields are refused."""
    named = _GEMINI.search(model)
    if named and int(named[1] or 3) >= 3:
        return ModelSettings(include_usage=True, reasoning=Reasoning(effort="low"))
    return ModelSettings(include_usage=True, temperature=0.0)


def _openai_settings(model: str) -> ModelSettings:
    """Nothing is to be kept at OpenAI; tools and thinking do not go together in chat completions since GPT-5.4."""
    return ModelSettings(
        include_usage=True,
        store=False,
        temperature=None if _THINKS.match(model) else 0.0,
        reasoning=Reasoning(effort="none") if _NEED_NOT_THINK.match(model) else None,
    )
