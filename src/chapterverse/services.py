"""The engines that searching and answering use. `wiring` builds them once."""

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
    """The engines for searching."""

    settings: Settings
    embedder: Embedder
    index: Index
    dependencies: tuple[Dependency, ...]  # probed by health checks and `doctor`


@dataclass(frozen=True, slots=True)
class Services(Engines):
    """The engines for answering."""

    writer: "Writer"
    conversations: "Conversations"
    judge: Judge | None = None  # checks the writer's statements; None: only quotes of the book are shown
    reader: SectionReader = field(default_factory=shared_reader)  # loads its weights on first use
