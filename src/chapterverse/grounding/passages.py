"""What the check of an answer takes and gives: passages, evidence, verdicts, and who may judge.

Owns the frozen values that flow through grounding. Never judges. Offsets are in characters (Unicode code points),
0-based, end exclusive, and count into `Passage.text`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Reason = Literal["unsupported", "no claim", "question", "repeated", "refusal", "too long"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that was issued a number for this answer: a chunk, or the reader's whole selection."""

    number: int
    text: str
    context: str = ""  # headings above it; their words are known to it, their numbers are not evidence
    barred: tuple[tuple[int, int], ...] = ()  # stretches that talk to the model: never evidence


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sentences of a passage, word for word: `passage.text[start:end]`."""

    passage: Passage
    start: int
    end: int
    antecedent: tuple[int, int] | None = None  # the sentence before, when this one begins by pointing back to it

    @property
    def quote(self) -> str:
        """The sentences themselves."""
        return self.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bears a claim out; without evidence, why nothing does."""

    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    likely: bool = False  # not borne out as it is written, but the book seems to say it

    @property
    def supported(self) -> bool:
        """Whether the claim may be shown."""
        return bool(self.evidence)


class Judge(Protocol):
    """Says whether passages bear out a claim."""

    def judge(self, claim: str, passages: Sequence[Passage]) -> Verdict:
        """Find the evidence for a claim, looking at the passages in the order given."""
        ...


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a number of the answer points: sentences of one passage, `text[start:end]`."""

    marker: int
    passage_number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shown:
    """Text that may be sent to the reader, with the citations behind it."""

    text: str
    citations: tuple[Citation, ...]
    replaced: bool = False  # the book's own sentence, in the place of one that failed


@dataclass(frozen=True, slots=True)
class Withheld:
    """Text that must never reach the reader."""

    text: str
    reason: Reason
    why: str = ""
