"""Embeddings of OpenAI or of any server with its API: Ollama, vLLM, TEI, llama.cpp.

Batches, retries and the translation of errors are in `remote`.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chapterverse.embeddings.remote import DEFAULT_LIMITS, EmbeddingService, Limits, Purpose, RemoteEmbedder, Wire


class OpenAIEmbedder(RemoteEmbedder):
    """A model behind `{base_url}/embeddings`. Vectors of another dimension than `dimension` are an error."""

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
            texts=256,  # small servers are slow; OpenAI accepts 2,048
            # The API refuses longer texts. A token has at least one byte, so this many bytes are never too long.
            text_bytes=self.window,
            call_bytes=300_000,  # the API's limit, in tokens
        )
        super().__init__(service, wire, limits)

    @property
    def engine(self) -> str:
        """The kind of server and the model."""
        return f"OpenAI-compatible {self.service.model}"

    async def probe(self) -> None:
        """List the models: free, and fails for a wrong key. Some servers have no such list."""
        await self._probe("models", may_be_absent=True)

    def _request(self, texts: Sequence[str], _: Purpose) -> Mapping[str, Any]:
        service = self.service
        # Other models have a fixed dimension, and many servers refuse the parameter.
        size = {"dimensions": service.dimension} if service.model.startswith("text-embedding-3-") else {}
        return {"model": service.model, "input": texts, "encoding_format": "float", **size}


def _rows(answer: Any) -> Sequence[Any]:
    """The vectors in the order of the texts. Some servers always send base64."""
    data = sorted(answer["data"], key=lambda item: int(item["index"]))
    return [_numbers(item["embedding"]) for item in data]


def _numbers(embedding: Any) -> Any:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return embedding
