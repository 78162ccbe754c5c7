"""Embeddings of Cohere, over its v2 API.

Batches, retries and the translation of errors are in `remote`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from chapterverse.embeddings.remote import DEFAULT_LIMITS, EmbeddingService, Limits, Purpose, RemoteEmbedder, Wire
from chapterverse.errors import ConfigurationError

# Models with a fixed dimension. Later models need it in every request.
_FIXED = {
    "embed-english-v3.0": 1024,
    "embed-multilingual-v3.0": 1024,
    "embed-english-light-v3.0": 384,
    "embed-multilingual-light-v3.0": 384,
}
_DIMENSIONS = {**_FIXED, "embed-v4.0": 1536}
_INPUT_TYPES: dict[Purpose, str] = {"query": "search_query", "passage": "search_document"}


class CohereEmbedder(RemoteEmbedder):
    """Cohere's embedding models. `dimension` is needed only for a model that is not listed here."""

    window = 512  # tokens that v3 reads; v4 would read more

    def __init__(
        self,
        api_key: str,
        model: str = "embed-english-v3.0",
        base_url: str = "https://api.cohere.com",
        dimension: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        dimension = dimension or _DIMENSIONS.get(model)
        if dimension is None or dimension != _FIXED.get(model, dimension):
            raise ConfigurationError(f"COHERE_MODEL must be one of {', '.join(_DIMENSIONS)}.")
        service = EmbeddingService("cohere", "Cohere", base_url, model, dimension, api_key)
        wire = Wire(
            path="v2/embed",
            request=self._request,
            rows=lambda answer: answer["embeddings"]["float"],
            texts=96,  # the API's limit
            text_bytes=64 * self.window,  # far more than the window; the API truncates at a token
            call_bytes=1_000_000,
        )
        super().__init__(service, wire, limits)

    @property
    def engine(self) -> str:
        """The provider and the model."""
        return f"Cohere {self.service.model}"

    async def probe(self) -> None:
        """Ask for the model's description: free, and fails for a wrong key and for an unknown model."""
        await self._probe(f"v1/models/{self.service.model}")

    def _request(self, texts: Sequence[str], purpose: Purpose) -> Mapping[str, Any]:
        service = self.service
        size = {} if service.model in _FIXED else {"output_dimension": service.dimension}
        return {
            "model": service.model,
            "texts": texts,
            "input_type": _INPUT_TYPES[purpose],
            "embedding_types": ["float"],
            "truncate": "END",
            **size,
        }
