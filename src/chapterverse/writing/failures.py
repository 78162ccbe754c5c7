"""Translates vendors' errors into ours: safe messages, and which failures are worth another try."""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2
import openai
from agents import AgentsException, ModelTimeoutError

from chapterverse.embeddings.remote import explain_status, seconds_until
from chapterverse.errors import AgentUnavailable

# What the vendors' code may raise. The built-in ones come from parsing what a server sent, which can be anything.
VENDOR_FAULTS = (
    openai.OpenAIError,
    AgentsException,
    httpx2.HTTPError,
    httpx2.StreamError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
)

_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


@dataclass(frozen=True, slots=True)
class Service:
    """The service that is asked: its name for messages, its model, its settings."""

    name: str
    model: str
    settings: str  # how the names of its settings begin

    def explain(self, fault: Exception) -> AgentUnavailable:
        """What a vendor's error means for us."""
        if isinstance(fault, openai.APIStatusError):
            wait = seconds_until(fault.response.headers.get("Retry-After", ""), datetime.now(UTC))
            return self._refusal(fault.status_code, _error(fault.body), wait)
        if isinstance(fault, TimeoutError | openai.APITimeoutError | ModelTimeoutError | httpx2.TimeoutException):
            return self.failure(f"{self.name} did not answer in time.")
        if isinstance(fault, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError):
            return self.failure(f"{self.name} cannot be reached, or broke off its answer.")
        if isinstance(fault, openai.APIError):  # an error inside the stream: no status, perhaps a code
            said = _error(fault.body)
            if str(said.get("code", fault.code)) == "429":
                return self._refusal(429, said)
            return self.failure(f"{self.name} failed in the middle of its answer.")
        return self.failure(f"{self.name} gave an answer that cannot be read.")

    def failure(self, message: str, *, retryable: bool = True, retry_after: float | None = None) -> AgentUnavailable:
        """An error that names the model."""
        return AgentUnavailable(message, details={"model": self.model}, retryable=retryable, retry_after=retry_after)

    def _refusal(self, status: int, said: dict[str, Any], wait: float | None = None) -> AgentUnavailable:
        status = 401 if status == 400 and _detail(said, "reason") == "API_KEY_INVALID" else status  # Gemini's 401
        message, retryable = explain_status(status, self.name, f"{self.settings}_API_KEY", self.model)
        if status == 404:
            message += f" Set {self.settings}_MODEL to one that it serves, and check {self.settings}_BASE_URL."
        if status == 429 and said.get("code") in _SPENT:
            message, retryable = f"{self.name} says that the quota of {self.settings}_API_KEY is spent.", False
        delay = _DELAY.fullmatch(_detail(said, "retryDelay"))  # what Gemini asks for, in seconds
        if status == 429 and wait is None and delay:
            wait = math.ceil(float(delay[1]) * 10) / 10
        return self.failure(message, retryable=retryable, retry_after=wait if retryable else None)


def _error(body: object) -> dict[str, Any]:
    """The error object of a body: bare, inside `error`, or, from Gemini, inside a list."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    return body if isinstance(body, dict) else {}


def _detail(said: dict[str, Any], name: str) -> str:
    """A field of an error's details, of the first that has it."""
    details = said.get("details")
    entries = details if isinstance(details, list) else []
    return next((str(entry[name]) for entry in entries if isinstance(entry, dict) and name in entry), "")
