"""Embeddings by OpenAI or by any server with its API: Ollama, vLLM, TEI, llama.cpp.

Batches, retries and the translation of errors are in `remote`.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chapterverse.book import Fingerprint
from chapterverse.embeddings import Vectors
from chapterverse.embeddings.remote import DEFAULT_LIMITS, EmbeddingService, Limits, Purpose, RemoteEmbedder, Wire


class OpenAIEmbedder:
    """A model behind `{base_url}/embeddings`. `dimension` is what that model gives; another one is an error."""

    window = 8191  # tokens

    def __init__(
        self,
        api_key: str,
        model: str = "text-embedding-3-small",
        base_url: str = "https://api.openai.com/v1",
        dimension: int = 1536,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        name = "OpenAI" if base_url.startswith("https://api.openai.com/") else "the embedding server"
        service = EmbeddingService("openai", name, base_url, model, dimension, api_key)
        wire = Wire(
            path="embeddings",
            request=self._request,
            rows=_rows,
            texts=256,  # a small server takes its time; OpenAI itself takes 2,048
            # The API refuses what is too long. A token is at least a byte, so these many bytes are never too long.
            text_bytes=self.window,
            call_bytes=300_000,  # the API's limit, in tokens
        )
        self._remote = RemoteEmbedder(service, wire, limits)

    @property
    def fingerprint(self) -> Fingerprint:
        """Provider, model and dimension."""
        return self._remote.service.fingerprint

    @property
    def engine(self) -> str:
        """Which kind of server, and which model."""
        return f"OpenAI-compatible {self._remote.service.model}"

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        return await self._remote.query(text)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages."""
        return await self._remote.passages(texts)

    async def probe(self) -> None:
        """List the models: free, and fails for a bad key. Some servers have no such list."""
        await self._remote.probe("models", may_be_absent=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._remote.close()

    def _request(self, texts: Sequence[str], _: Purpose) -> Mapping[str, Any]:
        service = self._remote.service
        # Other models have one size, and many servers refuse to be asked for it.
        size = {"dimensions": service.dimension} if service.model.startswith("text-embedding-3-") else {}
        return {"model": service.model, "input": texts, "encoding_format": "float", **size}


def _rows(answer: Any) -> Sequence[Any]:
    """The vectors in the order of the texts. Some servers send base64 whatever they are asked for."""
    data = sorted(answer["data"], key=lambda item: int(item["index"]))
    return [_numbers(item["embedding"]) for item in data]


def _numbers(embedding: Any) -> Any:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return embedding
