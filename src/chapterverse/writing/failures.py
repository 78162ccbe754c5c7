"""Translates vendors' errors into ours: safe messages, and which failures are worth another try."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2
import openai
from agents import AgentsException, ModelTimeoutError

from chapterverse.embeddings.remote import seconds_until
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
    """Who is asked, in words for people, and which settings say so."""

    name: str
    model: str
    key_variable: str
    model_variable: str
    url_variable: str

    def explain(self, fault: Exception) -> AgentUnavailable:
        """What a vendor's error means for us."""
        if isinstance(fault, openai.APIStatusError):
            return self._refusal(fault)
        if isinstance(fault, TimeoutError | openai.APITimeoutError | ModelTimeoutError | httpx2.TimeoutException):
            return self.failure(f"{self.name} did not answer in time.")
        if isinstance(fault, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError):
            return self.failure(f"{self.name} cannot be reached, or broke off its answer.")
        if isinstance(fault, openai.APIError):  # an error inside the stream: no status, perhaps a code
            return self._reported(fault)
        return self.failure(f"{self.name} gave an answer that cannot be read.")

    def failure(self, message: str, *, retryable: bool = True, retry_after: float | None = None) -> AgentUnavailable:
        """An error that names the model."""
        return AgentUnavailable(message, details={"model": self.model}, retryable=retryable, retry_after=retry_after)

    def _refusal(self, fault: openai.APIStatusError) -> AgentUnavailable:
        status, said = fault.status_code, _error(fault.body)
        if status in (401, 403) or (status == 400 and "API_KEY_INVALID" in _reasons(said)):  # Gemini's way to say 401
            return self.failure(f"{self.key_variable} was refused by {self.name}.", retryable=False)
        if status == 404:
            return self.failure(
                f"{self.name} does not serve the model {self.model}. "
                f"Set {self.model_variable} to one that it serves, and check {self.url_variable}.",
                retryable=False,
            )
        if status == 429:
            return self._limited(said, fault.response.headers.get("Retry-After", ""))
        if status in (408, 409) or status >= 500:
            wait = seconds_until(fault.response.headers.get("Retry-After", ""), datetime.now(UTC))
            return self.failure(f"{self.name} failed (HTTP {status}).", retry_after=wait)
        return self.failure(f"{self.name} refused the request (HTTP {status}).", retryable=False)

    def _limited(self, said: dict[str, Any], header: str) -> AgentUnavailable:
        if said.get("code") in _SPENT:
            return self.failure(f"{self.name} says that the quota of {self.key_variable} is spent.", retryable=False)
        wait = seconds_until(header, datetime.now(UTC))
        wait = _retry_delay(said) if wait is None else wait
        return self.failure(f"{self.name} takes no more requests for the moment.", retry_after=wait)

    def _reported(self, fault: openai.APIError) -> AgentUnavailable:
        said = _error(fault.body)
        if str(said.get("code", fault.code)) == "429":
            return self._limited(said, "")
        return self.failure(f"{self.name} failed in the middle of its answer.")


def _error(body: object) -> dict[str, Any]:
    """The error object of a body: bare, inside `error`, or, from Gemini, inside a list."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    return body if isinstance(body, dict) else {}


def _details(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    details = said.get("details")
    return (entry for entry in details if isinstance(entry, dict)) if isinstance(details, list) else iter(())


def _reasons(said: dict[str, Any]) -> list[object]:
    return [entry.get("reason") for entry in _details(said)]


def _retry_delay(said: dict[str, Any]) -> float | None:
    """What Gemini asks for in its RetryInfo, in seconds."""
    delays = (_DELAY.fullmatch(str(entry.get("retryDelay", ""))) for entry in _details(said))
    return next((math.ceil(float(delay[1]) * 10) / 10 for delay in delays if delay), None)
