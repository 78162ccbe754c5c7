"""Finds the known questions that a change of the book breaks, fixes or makes contradictory.

A baseline has the evidence of every answer. After a change the same questions are asked again. A question is broken if
its evidence is no longer shown, with two exceptions: the set confirms the answer with other evidence, or the question
is refused now although all text that was shown is unchanged in its section. In the second case the change of the book
did not break it.

The summary for a pull request quotes questions and pages in code spans, so that they contain no active markup, mention
or link.
"""

import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from chapterverse.book import edition_key
from chapterverse.conversations.topic import shorten
from chapterverse.evaluation.cases import Case, Ending
from chapterverse.evaluation.contradictions import Conflict, QuotedPlace, conflicts_of
from chapterverse.evaluation.files import load_model
from chapterverse.evaluation.measures import LEAST_WORDS, contains, is_evidence, right, words_of
from chapterverse.evaluation.quotes import Quote, State, locate, whole
from chapterverse.evidence.exact import comparable
from chapterverse.models import Frozen
from chapterverse.services import Services

Verdict = Literal["broken", "contradictory", "failed", "unsure", "changed", "fixed", "new", "same"]
FORMAT: Final = 1  # of the baseline; increase it when older ones cannot be read
SHOWN: Final = 25  # questions listed for each verdict; the rest is counted
QUOTED: Final = 240  # characters of a quote
SORTS: Final[tuple[tuple[Verdict, str], ...]] = (
    ("broken", "Broken"),
    ("contradictory", "Contradictory"),
    ("failed", "Not asked, because of an error"),
    ("unsure", "Refused now, although the book still says it"),
    ("changed", "Answered in another way, and still right"),
    ("fixed", "Fixed"),
    ("new", "New"),
)
_JOINTS: Final = re.compile(r"(?<=\w)[-‐‑–—/](?=\w)|[()\[\]{}]")
_LOST: Final = {
    "gone": "Its evidence is no longer in the book.",
    "changed": "Its evidence was changed.",
    "moved": "Its evidence has moved.",
    "stands": "Its evidence is still in the book.",
}


class AnsweringQuote(QuotedPlace):
    """Evidence of an answer: `page_text[start:end] == text` at the time of the answer."""

    page_id: str
    start: int
    end: int
    excerpt: str = ""  # all that was shown of the page, with this text in it; baselines of before have none


class Outcome(Frozen):
    """The evidence of an answer, and what contradicts it."""

    id: str
    question: str
    context: str | None = None  # `Question.context`; None in baselines of before
    status: Ending
    right: bool | None = None  # None if the set does not say
    evidence: tuple[AnsweringQuote, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether the question was answered, not refused."""
        return self.status in ("answered", "truncated")


class Baseline(Frozen):
    """The outcomes of all questions for one version of the book."""

    format: Literal[1] = FORMAT
    made_at: datetime
    model: str
    embeddings: str
    book: str
    outcomes: tuple[Outcome, ...]


class CheckFinding(Frozen):
    """A question and how its outcome changed since the baseline."""

    verdict: Verdict
    before: Outcome | None
    now: Outcome
    lost: State | None = None  # the state of its earlier evidence, if that is no longer shown
    there: str = ""  # the text in place of that evidence
    error: str = ""


def outcome_of(case: Case, conflicts: Sequence[Conflict] = ()) -> Outcome:
    """Return the outcome of a case, for a baseline."""
    evidence = [
        AnsweringQuote(
            source_url=citation.source_url,
            page_title=citation.page_title,
            section_heading=citation.section_heading,
            page_id=citation.page_id,
            book=citation.book,
            version=citation.version,
            excerpt=citation.quote,
            **mark.model_dump(),
        )
        for citation in case.citations
        for mark in citation.marks
    ]
    asked = case.question
    return Outcome(
        id=asked.id,
        question=asked.question,
        context=asked.context,
        status=case.status,
        right=right(case),
        evidence=tuple(evidence),
        conflicts=tuple(conflicts),
    )


async def compare_case(case: Case, before: Outcome | None, services: Services) -> CheckFinding:
    """Compare a case with its outcome in the baseline."""
    now = outcome_of(case, await conflicts_of(case, services.judge))
    if case.status == "failed":
        return CheckFinding(verdict="failed", before=before, now=now, error=case.error)
    if before is None or before.status == "failed":
        return CheckFinding(verdict="new", before=before, now=now)
    if _newly_contradicted(before, now):
        return CheckFinding(verdict="contradictory", before=before, now=now)
    if case.question.answerable and before.answered and now.answered:
        return await _both_answered(case, before, now, services)
    ending = CheckFinding(verdict=_ending(case, before), before=before, now=now)
    return ending if now.answered else await _now_refused(ending, before, services)


async def _both_answered(case: Case, before: Outcome, now: Outcome, services: Services) -> CheckFinding:
    """Compare two answers."""
    lost = [evidence for evidence in before.evidence if not _shown(evidence, case)]
    same = CheckFinding(verdict="same", before=before, now=now)
    if before.right is False and now.right:
        return same.model_copy(update={"verdict": "fixed"})
    if not lost:
        return same
    elsewhere = all(_shown(evidence, case, anywhere=True) for evidence in lost)
    verdict: Verdict = "changed" if elsewhere or _known_right(case) else "broken"
    finding = await _with_loss(same.model_copy(update={"verdict": verdict}), lost, services)
    # If some evidence is shown and all of it is still in the book, the answer only shows less.
    return same if finding.lost == "stands" and len(lost) < len(before.evidence) else finding


async def _now_refused(ending: CheckFinding, before: Outcome, services: Services) -> CheckFinding:
    """Add the state of the earlier evidence to the finding for a refusal."""
    finding = await _with_loss(ending, before.evidence, services)
    still_right = finding.verdict == "broken" and finding.lost == "stands" and before.right is not False
    if still_right and await _all_as_shown(before.evidence, services):
        return finding.model_copy(update={"verdict": "unsure"})
    return finding


def _ending(case: Case, before: Outcome) -> Verdict:
    """Return the verdict for a question that was refused, is refused, or should be refused."""
    if case.answered == before.answered:
        return "same"
    if case.answered == case.question.answerable:  # answered or refused, as the set expects
        return "same" if right(case) is False else "fixed"  # a wrong answer after a refusal fixes nothing
    return "broken"


async def _with_loss(finding: CheckFinding, evidence: Sequence[AnsweringQuote], services: Services) -> CheckFinding:
    """Add the worst state of the evidence that is no longer shown to the finding."""
    order: tuple[State, ...] = ("gone", "changed", "moved", "stands")
    found: list[tuple[State, str]] = []
    for item in evidence:
        if item.page_id:
            quote = Quote(item.page_id, item.start, item.end, item.text, edition_key(item.book, item.version))
            standing = await locate(quote, services.embedder, services.index)
            on_page = standing.state == "moved" and standing.page and standing.page.page_id == item.page_id
            found.append(("stands" if on_page else standing.state, standing.now))
    if not found:
        return finding
    state, there = min(found, key=lambda known: order.index(known[0]))
    return finding.model_copy(update={"lost": state, "there": there})


async def _all_as_shown(evidence: Sequence[AnsweringQuote], services: Services) -> bool:
    """Whether all excerpts of an answer are still in the sections from which they were taken."""
    for item in evidence:
        page = await services.index.page(item.page_id)
        excerpt = " ".join(item.excerpt.split())
        if not excerpt or page is None or page.title != item.page_title:
            return False
        sections = [section for section in page.sections if section.heading == item.section_heading]
        if not any(excerpt in " ".join(page.text[one.start : one.end].split()) for one in sections):
            return False
    return True


def _shown(evidence: AnsweringQuote, case: Case, *, anywhere: bool = False) -> bool:
    """Whether an answer still shows the evidence, from the same page or from anywhere."""
    alone = anywhere and len(words_of(evidence.text)) >= LEAST_WORDS
    quotes = [citation.quote for citation in case.citations if alone or citation.page_id == evidence.page_id]
    return any(_says(quote, evidence.text) for quote in quotes)


def _says(quote: str, text: str) -> bool:
    """Whether a quote contains a text, with its signs and operators: `-20` is not `20`, and `>=` is not `<`. Hyphens
    and slashes inside words, and brackets, say nothing."""
    held, wanted = (comparable(_JOINTS.sub(" ", one)) for one in (quote, text))
    return f" {wanted} " in f" {held} " or bool(whole(text).search(quote))


def _known_right(case: Case) -> bool:
    """Whether the answer shows the evidence that the set names. A page alone, or other signs, are not enough."""
    named = case.question.sentence or case.question.answer
    pages_aside = case.question.model_copy(update={"page": (), "section": None})
    quotes = [citation.quote for citation in case.citations if named and is_evidence(pages_aside, citation)]
    return any(all(_says(quote, text) or not contains(quote, text) for text in named) for quote in quotes)


def _newly_contradicted(before: Outcome, now: Outcome) -> bool:
    """Whether the answer has a conflict that the baseline does not have."""
    earlier = {frozenset((conflict.said.text, conflict.otherwise.text)) for conflict in before.conflicts}
    return any(frozenset((conflict.said.text, conflict.otherwise.text)) not in earlier for conflict in now.conflicts)


def load_baseline(path: Path) -> Baseline | None:
    """Read a baseline; None if there is none."""
    wanted = "a baseline; make one with: chapterverse check QUESTIONS --save"
    return load_model(Baseline, path, wanted) if os.path.exists(path) else None  # noqa: PTH110 - Path.exists raises


def headline(findings: Sequence[CheckFinding]) -> str:
    """Return the findings in one line: `2 broken, 1 fixed, 54 as before`."""
    names: dict[Verdict, str] = {"changed": "answered in another way", "failed": "not asked", "same": "as before"}
    order: list[Verdict] = [*(verdict for verdict, _ in SORTS), "same"]
    counts = [
        (sum(finding.verdict == verdict for finding in findings), names.get(verdict, verdict)) for verdict in order
    ]
    return ", ".join(f"{count} {name}" for count, name in counts if count)


def make_summary(findings: Sequence[CheckFinding], baseline: Baseline, book: str) -> str:
    """Return the summary of all findings in Markdown, the worst first."""
    asked = "1 question was" if len(findings) == 1 else f"{len(findings)} questions were"
    lines = [
        f"## Questions to the book: {headline(findings)}",
        "",
        f"{asked} asked. The book has {book}; at the baseline it had {baseline.book}.",
    ]
    for verdict, title in SORTS:
        found = [finding for finding in findings if finding.verdict == verdict]
        if found:
            lines += ["", f"### {title} ({len(found)})", ""]
            lines += [line for finding in found[:SHOWN] for line in _item(finding)]
            lines += [f"- … and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n".join([*lines, ""])


def explained(finding: CheckFinding) -> list[str]:
    """Say what happened to a question, in one or two sentences."""
    before, now = finding.before, finding.now
    if finding.verdict == "failed":
        return [finding.error]
    if finding.verdict == "contradictory":
        return ["The book answers it in two ways."]
    ending = "Now answered from other words" if now.answered else "Now refused"
    if finding.verdict == "new" or before is None:
        return ["Answered." if now.answered else "Refused."]
    was = "Was answered" if before.answered else "Was refused"
    text = f"{was}. {ending}." if before.answered != now.answered else f"{ending}."
    return [text, *([_LOST[finding.lost]] if finding.lost else [])]


def _item(finding: CheckFinding) -> list[str]:
    now, before = finding.now, finding.before
    lines = [f"- {_code(now.question)} ({_code(now.id)}): {' '.join(map(_words, explained(finding)))}"]
    if finding.verdict == "contradictory":
        conflict = now.conflicts[0]
        return [*lines, _place("one place", conflict.said), _place("another", conflict.otherwise)]
    if finding.verdict in ("broken", "unsure", "changed") and before is not None:
        lines += [_place("before", evidence) for evidence in before.evidence[:1]]
        lines += [f"  - there now: {_code(finding.there)}"] if finding.lost == "changed" and finding.there else []
    if finding.verdict in ("broken", "changed", "fixed"):
        lines += [_place("now", evidence) for evidence in now.evidence[:1]]
    return lines


def _place(label: str, place: QuotedPlace | AnsweringQuote) -> str:
    return f"  - {label}: {_code(place.place)}: {_code(place.text)}"


def _words(text: str) -> str:
    """Escape the text of an error; our own sentences need no escaping."""
    return text if re.fullmatch(r"[\w .,;']+", text) else _code(text)


def _code(text: str) -> str:
    """Put a text into a code span, on one line."""
    line = shorten(" ".join(text.split()), QUOTED)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
