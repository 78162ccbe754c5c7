"""Constants that programs written for seed 000 import from `config`. The settings are in `settings.py`."""

from chapterverse.settings import COHERE_MODEL, QDRANT_COLLECTION

__all__ = ["COHERE_MODEL", "QDRANT_COLLECTION"]
