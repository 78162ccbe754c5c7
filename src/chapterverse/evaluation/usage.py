"""What readers asked and how it went, for the author of the book: counts, days, gaps.

Owns the shape of the report as JSON. Pages and tables are made of it elsewhere.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final

from pydantic import Field

from chapterverse.book import edition_names
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.evaluation.gaps import Gap, Namer, find_gaps, reconsidered, trouble_of
from chapterverse.models import Frozen, Reason
from chapterverse.services import Engines

MOST_BARS: Final = 62  # of the plot over time: two months of days, then weeks


class Span(Frozen):
    """Some days and what was asked in them. Each question counts once: rated down before refused before answered."""

    begins: date
    days: int
    answered: int
    refused: int
    rated_down: int

    @property
    def questions(self) -> int:
        """All of them."""
        return self.answered + self.refused + self.rated_down


class EditionUsage(Frozen):
    """What was asked of one version of one book. A question counts for each that its answer cites; one that was
    refused, for each that was searched."""

    book: str
    version: str
    questions: int
    answered: int
    refused: int
    rated_down: int


class UsageReport(Frozen):
    """What readers asked in a time."""

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
    editions: list[EditionUsage] = Field(default_factory=list)  # where books have names, the most asked first
    gaps: list[Gap]
    named_by: str = ""  # the model that named the groups


async def make_usage_report(
    asked: Sequence[AskedQuestion], engines: Engines, since: datetime, until: datetime, namer: Namer | None = None
) -> UsageReport:
    """The report on the questions of a time. Times are told in UTC."""
    manifest = await engines.index.manifest()
    asked = await reconsidered(asked, engines)
    return UsageReport(
        made_at=until,
        since=since,
        until=until,
        book=f"{manifest.pages} pages, {manifest.chunks} passages",
        questions=len(asked),
        sessions=len({one.session_id for one in asked}),
        answered=sum(one.status != "refused" for one in asked),
        refused=sum(one.status == "refused" for one in asked),
        low_confidence=sum(trouble_of(one) == "low" for one in asked),
        rated_up=sum(one.rating == "up" for one in asked),
        rated_down=sum(one.rating == "down" for one in asked),
        reasons=dict(Counter(one.reason for one in asked if one.reason)),
        about_selections=sum(one.mode == "selected_text" for one in asked),
        spans=spans_of(asked, since.date(), until.date()),
        editions=editions_of(asked),
        gaps=await find_gaps(asked, engines, namer),
    )


def editions_of(asked: Sequence[AskedQuestion]) -> list[EditionUsage]:
    """The questions by edition."""
    by_edition: dict[str, list[AskedQuestion]] = {}
    for one in asked:
        for key in one.editions:
            by_edition.setdefault(key, []).append(one)
    counted = [
        EditionUsage(
            **dict(zip(("book", "version"), edition_names(key), strict=True)),
            questions=len(mine),
            answered=sum(one.status != "refused" for one in mine),
            refused=sum(one.status == "refused" for one in mine),
            rated_down=sum(one.rating == "down" for one in mine),
        )
        for key, mine in by_edition.items()
        if key or len(by_edition) > 1
    ]
    return sorted(counted, key=lambda one: (-one.questions, one.book, one.version))


def spans_of(asked: Sequence[AskedQuestion], first: date, last: date) -> list[Span]:
    """The time in days, or in as many days each as keep the bars few; spans without questions are there, too."""
    days = (last - first).days + 1
    width = 1 if days <= MOST_BARS else 7 * -(-days // (7 * MOST_BARS))
    counts: Counter[tuple[int, str]] = Counter(
        ((one.created_at.date() - first).days // width, _ending(one)) for one in asked
    )
    return [
        Span(
            begins=first + timedelta(days=place * width),
            days=width,
            **{ending: counts[place, ending] for ending in ("answered", "refused", "rated_down")},
        )
        for place in range(-(-days // width))
    ]


def _ending(one: AskedQuestion) -> str:
    if one.rating == "down":
        return "rated_down"
    return "refused" if one.status == "refused" else "answered"
