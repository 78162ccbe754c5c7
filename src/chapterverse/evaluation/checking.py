"""What a change of the book does to known questions: which it breaks, fixes or makes contradictory.

A baseline holds what every question was answered from. After a change the same questions are asked again: a question is
broken if what answered it is no longer shown. The set may say what is right; then an answer in other words is no break.

The summary for a pull request quotes questions and pages in code spans, where nothing of them is markup, a mention or a
link.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from chapterverse.book import edition_key
from chapterverse.conversations.topic import shorten
from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.cases import Case, Ending
from chapterverse.evaluation.contradictions import Conflict, QuotedPlace, conflicts_of
from chapterverse.evaluation.measures import LEAST_WORDS, contains, is_evidence, right, words_of
from chapterverse.evaluation.quotes import Quote, State, locate
from chapterverse.models import Frozen
from chapterverse.services import Services

Verdict = Literal["broken", "contradictory", "changed", "fixed", "failed", "new", "same"]
FORMAT: Final = 1  # of the baseline; raise it when older ones cannot be read
SHOWN: Final = 25  # of each sort; the rest is counted
QUOTED: Final = 240  # characters of a quote
SORTS: Final[tuple[tuple[Verdict, str], ...]] = (
    ("broken", "Broken"),
    ("contradictory", "Contradictory"),
    ("failed", "Not asked, because of an error"),
    ("changed", "Answered in another way, and still right"),
    ("fixed", "Fixed"),
    ("new", "New"),
)
_LOST: Final = {
    "gone": "What answered it is gone from the book.",
    "changed": "What answered it was changed.",
    "moved": "What answered it stands elsewhere now.",
    "stands": "What answered it still stands in the book.",
}


class AnsweringQuote(QuotedPlace):
    """A stretch that answered a question: `page_text[start:end] == text`, as the page was then."""

    page_id: str
    start: int
    end: int


class Outcome(Frozen):
    """What a question was answered from, and what contradicted that."""

    id: str
    question: str
    status: Ending
    right: bool | None = None  # as far as the set says it
    evidence: tuple[AnsweringQuote, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether a reader was told anything about the matter."""
        return self.status in ("answered", "truncated")


class Baseline(Frozen):
    """The outcomes of all questions on a state of the book."""

    format: Literal[1] = FORMAT
    made_at: datetime
    model: str
    embeddings: str
    book: str
    outcomes: tuple[Outcome, ...]


class CheckFinding(Frozen):
    """A question, and what became of it since the baseline."""

    verdict: Verdict
    before: Outcome | None
    now: Outcome
    lost: State | None = None  # what became of what answered it, if that is no longer shown
    there: str = ""  # the words that stand in its place
    error: str = ""


def outcome_of(case: Case, conflicts: Sequence[Conflict] = ()) -> Outcome:
    """What a baseline holds of a case."""
    evidence = [
        AnsweringQuote(
            source_url=citation.source_url,
            page_title=citation.page_title,
            section_heading=citation.section_heading,
            page_id=citation.page_id,
            book=citation.book,
            version=citation.version,
            **mark.model_dump(),
        )
        for citation in case.citations
        for mark in citation.marks
    ]
    asked = case.question
    return Outcome(
        id=asked.id,
        question=asked.question,
        status=case.status,
        right=right(case),
        evidence=tuple(evidence),
        conflicts=tuple(conflicts),
    )


async def compare_case(case: Case, before: Outcome | None, services: Services) -> CheckFinding:
    """What became of one question."""
    now = outcome_of(case, await conflicts_of(case, services.judge))
    if case.status == "failed":
        return CheckFinding(verdict="failed", before=before, now=now, error=case.error)
    if before is None or before.status == "failed":
        return CheckFinding(verdict="new", before=before, now=now)
    if _told_anew(before, now):
        return CheckFinding(verdict="contradictory", before=before, now=now)
    if case.question.answerable and before.answered and now.answered:
        return await _both_answered(case, before, now, services)
    ending = CheckFinding(verdict=_ending(case, before), before=before, now=now)
    return ending if now.answered else await _with_loss(ending, before.evidence, services)


async def _both_answered(case: Case, before: Outcome, now: Outcome, services: Services) -> CheckFinding:
    """What became of a question that was and is answered."""
    lost = [one for one in before.evidence if not _shown(one, case)]
    same = CheckFinding(verdict="same", before=before, now=now)
    if before.right is False and now.right:
        return same.model_copy(update={"verdict": "fixed"})
    if not lost:
        return same
    elsewhere = all(_shown(one, case, anywhere=True) for one in lost)
    verdict: Verdict = "changed" if elsewhere or _known_right(case) else "broken"
    finding = await _with_loss(same.model_copy(update={"verdict": verdict}), lost, services)
    # Where some of it is shown and all of it is still there, the answer merely shows less of it.
    return same if finding.lost == "stands" and len(lost) < len(before.evidence) else finding


def _ending(case: Case, before: Outcome) -> Verdict:
    """The verdict on a question that was or is refused, or should be."""
    if case.answered == before.answered:
        return "same"
    if case.answered == case.question.answerable:  # answered, or refused, as it should be
        return "changed" if right(case) is False else "fixed"
    return "broken"


async def _with_loss(finding: CheckFinding, evidence: Sequence[AnsweringQuote], services: Services) -> CheckFinding:
    """The finding with what became of evidence that is no longer shown: the worst of it."""
    order: tuple[State, ...] = ("gone", "changed", "moved", "stands")
    found: list[tuple[State, str]] = []
    for one in evidence:
        if one.page_id:
            quote = Quote(one.page_id, one.start, one.end, one.text, edition_key(one.book, one.version))
            standing = await locate(quote, services.embedder, services.index)
            on_page = standing.state == "moved" and standing.page and standing.page.page_id == one.page_id
            found.append(("stands" if on_page else standing.state, standing.now))
    if not found:
        return finding
    state, there = min(found, key=lambda known: order.index(known[0]))
    return finding.model_copy(update={"lost": state, "there": there})


def _shown(evidence: AnsweringQuote, case: Case, *, anywhere: bool = False) -> bool:
    """Whether an answer still shows a stretch, from the same page or from anywhere."""
    alone = anywhere and len(words_of(evidence.text)) >= LEAST_WORDS
    quotes = [one.quote for one in case.citations if alone or one.page_id == evidence.page_id]
    return any(contains(quote, evidence.text) or evidence.text in quote for quote in quotes)


def _known_right(case: Case) -> bool:
    """Whether the set says that the answer shows the evidence. A page alone says too little."""
    exact = bool(case.question.sentence or case.question.answer)
    pages_aside = case.question.model_copy(update={"page": (), "section": None})
    return exact and any(is_evidence(pages_aside, one) for one in case.citations)


def _told_anew(before: Outcome, now: Outcome) -> bool:
    """Whether something contradicts the answer that did not before."""
    known = {frozenset((one.said.text, one.otherwise.text)) for one in before.conflicts}
    return any(frozenset((one.said.text, one.otherwise.text)) not in known for one in now.conflicts)


def load_baseline(path: Path) -> Baseline | None:
    """A baseline that was kept; None if there is none."""
    try:
        return Baseline.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise ValidationFailed(f"{path} cannot be read: {failure.strerror}") from None
    except ValidationError:
        raise ValidationFailed(f"{path} is no baseline; make one with: chapterverse check QUESTIONS --save") from None


def save_baseline(baseline: Baseline, path: Path) -> None:
    """Keep a baseline."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(baseline.model_dump_json(indent=1) + "\n", "utf-8")
    except OSError as failure:
        raise ValidationFailed(f"{path} cannot be written: {failure.strerror}") from None


def headline(findings: Sequence[CheckFinding]) -> str:
    """The findings in a line: `2 broken, 1 fixed, 54 as before`."""
    names: dict[Verdict, str] = {"changed": "answered in another way", "failed": "not asked", "same": "as before"}
    order: list[Verdict] = [*(verdict for verdict, _ in SORTS), "same"]
    counts = [(sum(one.verdict == verdict for one in findings), names.get(verdict, verdict)) for verdict in order]
    return ", ".join(f"{count} {name}" for count, name in counts if count)


def make_summary(findings: Sequence[CheckFinding], baseline: Baseline, book: str) -> str:
    """All findings, the worst first."""
    lines = [
        f"## Questions to the book: {headline(findings)}",
        "",
        f"{len(findings)} questions were asked. The book has {book}; at the baseline it had {baseline.book}.",
    ]
    for verdict, title in SORTS:
        found = [one for one in findings if one.verdict == verdict]
        if found:
            lines += ["", f"### {title} ({len(found)})", ""]
            lines += [line for one in found[:SHOWN] for line in _item(one)]
            lines += [f"- … and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n".join([*lines, ""])


def explained(finding: CheckFinding) -> list[str]:
    """What happened to a question, in a sentence or two, for people."""
    before, now = finding.before, finding.now
    if finding.verdict == "failed":
        return [finding.error]
    if finding.verdict == "contradictory":
        return ["The book answers it in two ways."]
    ending = "Now answered from other words" if now.answered else "Now refused"
    if finding.verdict == "new" or before is None:
        return ["Answered." if now.answered else "Refused."]
    was = "Was answered" if before.answered else "Was refused"
    said = f"{was}. {ending}." if before.answered != now.answered else f"{ending}."
    return [said, *([_LOST[finding.lost]] if finding.lost else [])]


def _item(finding: CheckFinding) -> list[str]:
    now, before = finding.now, finding.before
    lines = [f"- {_code(now.question)} ({_code(now.id)}): {' '.join(map(_words, explained(finding)))}"]
    if finding.verdict == "contradictory":
        conflict = now.conflicts[0]
        return [*lines, _place("one place", conflict.said), _place("another", conflict.otherwise)]
    if finding.verdict in ("broken", "changed") and before is not None:
        lines += [_place("before", one) for one in before.evidence[:1]]
        lines += [f"  - there now: {_code(finding.there)}"] if finding.lost == "changed" and finding.there else []
    if finding.verdict in ("broken", "changed", "fixed"):
        lines += [_place("now", one) for one in now.evidence[:1]]
    return lines


def _place(label: str, place: QuotedPlace | AnsweringQuote) -> str:
    return f"  - {label}: {_code(place.head)}: {_code(place.text)}"


def _words(text: str) -> str:
    """Our own sentences are shown as they are; the text of an error is escaped."""
    return text if re.fullmatch(r"[\w .,;']+", text) else _code(text)


def _code(text: str) -> str:
    """A text in a code span, on one line."""
    line = shorten(" ".join(text.split()), QUOTED)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
