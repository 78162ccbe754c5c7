"""The language models that can write and judge: Gemini and any OpenAI-compatible server.

Their addresses, settings, time limits and probes. Nothing here connects before the first question.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from agents import ModelSettings, OpenAIChatCompletionsModel
from openai import AsyncOpenAI, NotFoundError
from openai.types.shared import Reasoning

from chapterverse.config import GENERATION_SECONDS
from chapterverse.errors import ConfigurationError
from chapterverse.writing import prompts
from chapterverse.writing.agent import AgentWriter
from chapterverse.writing.completions import CompletionsClient
from chapterverse.writing.failures import VENDOR_FAULTS, Service
from chapterverse.writing.messages import Place
from chapterverse.writing.quirks import is_gemini_3, is_openai, need_not_think, refuses_temperature

PROBE_SECONDS: Final = 2.0
CONNECT_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """How a model is to write, whichever it is."""

    max_calls: int = 4
    temperature: float = 0.0
    max_tokens: int | None = None
    prompt: str = prompts.ANSWER


DEFAULT: Final = WritingOptions()


def open_gemini(api_key: str, model: str, base_url: str, options: WritingOptions = DEFAULT) -> AgentWriter:
    """Gemini through its OpenAI-compatible endpoint."""
    service = Service("Gemini", model, "GEMINI_API_KEY", "GEMINI_MODEL", "GEMINI_BASE_URL")
    settings = _gemini_settings(model, options)
    return _open(service, _client(service, api_key, base_url), settings, "tool", options)


def open_openai(api_key: str, model: str, base_url: str, options: WritingOptions = DEFAULT) -> AgentWriter:
    """OpenAI itself, or any server that speaks as it does: Ollama, vLLM, llama.cpp …"""
    own = is_openai(base_url)
    name = "OpenAI" if own else f"The language model server at {urlsplit(base_url).hostname}"
    service = Service(name, model, "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL")
    settings = _openai_settings(model, options) if own else _settings(options)
    return _open(service, _client(service, api_key, base_url), settings, "tool" if own else "message", options)


def _open(
    service: Service, client: AsyncOpenAI, settings: ModelSettings, place: Place, options: WritingOptions
) -> AgentWriter:
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

    return AgentWriter(
        name=service.model,
        engine=f"{service.model} at {client.base_url.host}",
        model=OpenAIChatCompletionsModel(service.model, client),
        settings=settings,
        place=place,
        explain=service.explain,
        probe_model=probe,
        close_model=client.close,
        max_calls=options.max_calls,
        prompt=options.prompt,
    )


def _client(service: Service, api_key: str, base_url: str) -> AsyncOpenAI:
    key = api_key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigurationError(f"{service.key_variable}: must be plain printable characters")
    # Retries are ours: they know what has been written already and when the answer is due.
    timeout = httpx2.Timeout(GENERATION_SECONDS, connect=CONNECT_SECONDS)
    return CompletionsClient(api_key=key, base_url=base_url, timeout=timeout)


def _settings(options: WritingOptions, **more: Any) -> ModelSettings:
    usual = {"include_usage": True, "temperature": options.temperature, "max_tokens": options.max_tokens}
    return ModelSettings(**usual | more)


def _gemini_settings(model: str, options: WritingOptions) -> ModelSettings:
    """Gemini 3 loops below its own temperature, and thinks long unless told otherwise. Unknown fields are refused."""
    if is_gemini_3(model):
        return _settings(options, temperature=options.temperature or None, reasoning=Reasoning(effort="low"))
    return _settings(options)


def _openai_settings(model: str, options: WritingOptions) -> ModelSettings:
    """Nothing is to be kept at OpenAI; tools and thinking do not go together in chat completions since GPT-5.4."""
    return _settings(
        options,
        store=False,
        temperature=None if refuses_temperature(model) else options.temperature,
        reasoning=Reasoning(effort="none") if need_not_think(model) else None,
    )
