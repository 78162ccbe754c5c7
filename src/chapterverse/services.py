"""What finding and answering need, built once by `wiring` and frozen.

Owns the bundles alone. Never builds or closes anything, and imports no engine.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chapterverse.config import Settings
from chapterverse.embeddings import Embedder
from chapterverse.grounding import Judge
from chapterverse.health import Dependency
from chapterverse.index import Index

if TYPE_CHECKING:
    from chapterverse.agent import LanguageModel
    from chapterverse.database import Conversations


@dataclass(frozen=True, slots=True)
class Engines:
    """What finding passages needs."""

    settings: Settings
    embedder: Embedder
    index: Index
    dependencies: tuple[Dependency, ...]  # what health and `doctor` probe


@dataclass(frozen=True, slots=True)
class Services(Engines):
    """What answering needs besides."""

    model: "LanguageModel"
    conversations: "Conversations"
    judge: Judge  # of what the model writes
