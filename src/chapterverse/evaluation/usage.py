"""The usage report for the author of the book: the readers' questions, their outcomes, and gaps of the book.

This module makes the report as data; pages and tables are made elsewhere.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final

from pydantic import Field

from chapterverse.book import edition_names
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.evaluation.gaps import Gap, Namer, find_gaps, find_troubled
from chapterverse.models import Frozen, Reason
from chapterverse.services import Engines

MOST_BARS: Final = 62  # in the plot over time: up to two months in days, longer periods in weeks


class Span(Frozen):
    """A span of days and its questions. Each question counts once: as rated down, else as refused, else as answered."""

    begins: date
    days: int
    answered: int
    refused: int
    rated_down: int

    @property
    def questions(self) -> int:
        """All questions of the span."""
        return self.answered + self.refused + self.rated_down


class EditionUsage(Frozen):
    """Questions about one version of one book. A question counts for each edition that its answer cites; a refused one,
    for each that was searched."""

    book: str
    version: str
    questions: int
    answered: int
    refused: int
    rated_down: int


class UsageReport(Frozen):
    """The questions of a period."""

    made_at: datetime
    since: datetime
    until: datetime
    book: str
    questions: int
    sessions: int
    answered: int
    refused: int
    low_confidence: int
    rated_up: int
    rated_down: int
    reasons: dict[Reason, int]
    about_selections: int
    spans: list[Span]
    editions: list[EditionUsage] = Field(default_factory=list)  # if books have names; the most asked first
    gaps: list[Gap]  # the sure ones first
    named_by: str = ""  # the model that named the groups


async def make_usage_report(
    asked: Sequence[AskedQuestion], engines: Engines, since: datetime, until: datetime, namer: Namer | None = None
) -> UsageReport:
    """Make the report on the questions of a period. Times are in UTC."""
    manifest = await engines.index.manifest()
    troubled = await find_troubled(asked, engines)
    return UsageReport(
        made_at=until,
        since=since,
        until=until,
        book=f"{manifest.pages} pages, {manifest.chunks} passages",
        questions=len(asked),
        sessions=len({question.session_id for question in asked}),
        answered=sum(question.status != "refused" for question in asked),
        refused=sum(question.status == "refused" for question in asked),
        low_confidence=sum(one.trouble_of(turn) == "low" for one in troubled for turn in one.turns),
        rated_up=sum(question.rating == "up" for question in asked),
        rated_down=sum(question.rating == "down" for question in asked),
        reasons=dict(Counter(question.reason for question in asked if question.reason)),
        about_selections=sum(question.mode == "selected_text" for question in asked),
        spans=spans_of(asked, since.date(), until.date()),
        editions=editions_of(asked),
        gaps=await find_gaps(troubled, engines, namer),
    )


def editions_of(asked: Sequence[AskedQuestion]) -> list[EditionUsage]:
    """Count the questions by edition."""
    by_edition: dict[str, list[AskedQuestion]] = {}
    for question in asked:
        for key in question.editions:
            by_edition.setdefault(key, []).append(question)
    counted = [
        EditionUsage(
            **dict(zip(("book", "version"), edition_names(key), strict=True)),
            questions=len(questions),
            answered=sum(question.status != "refused" for question in questions),
            refused=sum(question.status == "refused" for question in questions),
            rated_down=sum(question.rating == "down" for question in questions),
        )
        for key, questions in by_edition.items()
        if key or len(by_edition) > 1
    ]
    return sorted(counted, key=lambda question: (-question.questions, question.book, question.version))


def spans_of(asked: Sequence[AskedQuestion], first: date, last: date) -> list[Span]:
    """Divide the period into spans of a day, or of some weeks if it is long, so that there are not too many bars. Empty
    spans are included."""
    days = (last - first).days + 1
    width = 1 if days <= MOST_BARS else 7 * -(-days // (7 * MOST_BARS))
    counts: Counter[tuple[int, str]] = Counter(
        ((question.created_at.date() - first).days // width, _ending(question)) for question in asked
    )
    return [
        Span(
            begins=first + timedelta(days=place * width),
            days=width,
            **{ending: counts[place, ending] for ending in ("answered", "refused", "rated_down")},
        )
        for place in range(-(-days // width))
    ]


def _ending(question: AskedQuestion) -> str:
    if question.rating == "down":
        return "rated_down"
    return "refused" if question.status == "refused" else "answered"
