"""The findings of a check in Markdown, for a pull request.

Questions and quotes are text of others: they stand in code spans, where nothing of them is markup, a mention or a link.
"""

import re
from collections.abc import Sequence
from typing import Final

from chapterverse.conversations.topic import shorten
from chapterverse.evaluation.checking import AnsweringQuote, Baseline, CheckFinding, Verdict
from chapterverse.evaluation.contradictions import QuotedPlace

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
