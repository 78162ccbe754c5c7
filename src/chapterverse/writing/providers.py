"""The language models that can write: Gemini and any OpenAI-compatible server. Nothing here connects."""

from typing import Final
from urllib.parse import urlsplit

import httpx2
from agents import ModelSettings
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

from chapterverse.config import GENERATION_SECONDS
from chapterverse.errors import ConfigurationError
from chapterverse.writing.agent import AgentWriter, WritingOptions
from chapterverse.writing.failures import Service
from chapterverse.writing.messages import Place
from chapterverse.writing.quirks import is_openai, quirks_of

CONNECT_SECONDS: Final = 3.0
DEFAULT: Final = WritingOptions()


def open_gemini(api_key: str, model: str, base_url: str, options: WritingOptions = DEFAULT) -> AgentWriter:
    """Gemini through its OpenAI-compatible endpoint."""
    service = Service("Gemini", model, "GEMINI_API_KEY", "GEMINI_MODEL", "GEMINI_BASE_URL")
    return _open(service, api_key, base_url, "tool", options)


def open_openai(api_key: str, model: str, base_url: str, options: WritingOptions = DEFAULT) -> AgentWriter:
    """OpenAI itself, or any server that speaks as it does: Ollama, vLLM, llama.cpp …"""
    own = is_openai(base_url)
    name = "OpenAI" if own else f"The language model server at {urlsplit(base_url).hostname}"
    service = Service(name, model, "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL")
    return _open(service, api_key, base_url, "tool" if own else "message", options)


def _open(service: Service, api_key: str, base_url: str, place: Place, options: WritingOptions) -> AgentWriter:
    key = api_key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigurationError(f"{service.key_variable}: must be plain printable characters")
    # Retries are ours: they know what has been written already and when the answer is due.
    timeout = httpx2.Timeout(GENERATION_SECONDS, connect=CONNECT_SECONDS)
    client = AsyncOpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)
    quirks = quirks_of(service.model, base_url)
    refused = quirks.temperature == "none" or (quirks.temperature == "not zero" and not options.temperature)
    settings = ModelSettings(
        include_usage=True,
        temperature=None if refused else options.temperature,
        max_tokens=options.max_tokens,
        store=quirks.store,
        reasoning=Reasoning(effort=quirks.effort) if quirks.effort else None,
    )
    return AgentWriter(service, client, settings, place, options)
