"""The outcome of a question: what was found, answered and cited, and its cost."""

from typing import Literal

from chapterverse.evaluation.questions import Question
from chapterverse.models import ConfidenceLevel, Frozen

Ending = Literal["answered", "refused", "truncated", "failed"]


class FoundPassage(Frozen):
    """A passage that was found, in the order of the search."""

    source_url: str
    page_title: str
    section_heading: str
    text: str
    similarity: float
    book: str = ""
    version: str = ""


class MarkedStretch(Frozen):
    """A highlighted range: `page_text[start:end] == text`."""

    start: int
    end: int
    text: str


class Citation(Frozen):
    """Evidence that was shown."""

    source_url: str
    page_title: str
    section_heading: str
    quote: str
    page_id: str = ""
    book: str = ""
    version: str = ""
    marks: tuple[MarkedStretch, ...] = ()  # the parts of the quote that answer


class Case(Frozen):
    """A question with its outcome."""

    question: Question
    searched: str = ""  # the question that was searched for
    passages: tuple[FoundPassage, ...] = ()
    alone: tuple[FoundPassage, ...] = ()  # for a follow-up: passages found with its own words
    rewritten: tuple[FoundPassage, ...] = ()  # for a follow-up: passages found with a person's rewrite
    status: Ending
    answer: str = ""
    citations: tuple[Citation, ...] = ()
    confidence: float = 0.0
    level: ConfidenceLevel = "insufficient"
    latency_ms: float = 0.0
    retrieval_ms: float = 0.0
    generation_ms: float = 0.0
    tokens: int = 0
    tokens_written: int = 0
    calls: int = 0
    withheld: int = 0
    error: str = ""

    @property
    def answered(self) -> bool:
        """Whether the question was answered, not refused."""
        return self.status in ("answered", "truncated")
