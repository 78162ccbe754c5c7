"""What became of a question: what was found, said and cited, and what it took."""

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
    """A stretch that answers: `page_text[start:end] == text`."""

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
    marks: tuple[MarkedStretch, ...] = ()  # of the quote, what answers


class Case(Frozen):
    """A question with its outcome."""

    question: Question
    searched: str = ""  # the question as it stood alone
    passages: tuple[FoundPassage, ...] = ()
    alone: tuple[FoundPassage, ...] = ()  # of a follow-up: what its own words find
    rewritten: tuple[FoundPassage, ...] = ()  # and what a person's rewrite of it finds
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
        """Whether a reader was told anything about the matter."""
        return self.status in ("answered", "truncated")
