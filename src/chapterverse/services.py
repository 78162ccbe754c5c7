"""What finding and answering need, built once by `wiring` and frozen."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chapterverse.embeddings import Embedder
from chapterverse.evidence.judge import Judge
from chapterverse.health import Dependency
from chapterverse.index import Index
from chapterverse.settings import Settings
from chapterverse.trained import SectionReader, shared_reader

if TYPE_CHECKING:
    from chapterverse.conversations.store import Conversations
    from chapterverse.writing import Writer


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

    writer: "Writer"
    conversations: "Conversations"
    judge: Judge | None = None  # of what the writer writes; None: only the book's words are shown
    reader: SectionReader = field(default_factory=shared_reader)  # loads its weights when it is first used
