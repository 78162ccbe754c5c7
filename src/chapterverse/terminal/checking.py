"""How the findings of `check` look: those that matter by sort, then a line of counts."""

from collections.abc import Sequence

from rich.text import Text

from chapterverse.conversations.topic import shorten
from chapterverse.editions import edition_label
from chapterverse.evaluation.check_summary import SORTS, headline, told
from chapterverse.evaluation.checking import Baseline, CheckFinding
from chapterverse.terminal import out, printable, show_note

_COLOURS = {"broken": "bold red", "contradictory": "bold yellow", "failed": "bold red", "fixed": "bold green"}
_QUOTED = 200  # characters


def show_findings(findings: Sequence[CheckFinding], baseline: Baseline, now: Baseline) -> None:
    """All questions that are not as they were."""
    for name, before, after in (
        ("model", baseline.model, now.model),
        ("embeddings", baseline.embeddings, now.embeddings),
    ):
        if before != after:
            show_note(f"The baseline was made with another {name} ({before}; now {after}): it can make a difference.")
    for verdict, title in SORTS:
        found = [one for one in findings if one.verdict == verdict]
        if found:
            out.print(Text(f"{title} ({len(found)})", style=_COLOURS.get(verdict, "bold")))
        for one in found:
            out.print(f"  {printable(one.now.id)}  {printable(one.now.question)}")
            out.print(Text(f"      {printable(' '.join(told(one)))}", style="dim"))
            for label, text in _quotes(one):
                out.print(Text(f"      {label}: {printable(shorten(' '.join(text.split()), _QUOTED))}", style="dim"))
    out.print(f"{len(findings)} questions: {headline(findings)}.")


def _quotes(finding: CheckFinding) -> list[tuple[str, str]]:
    if finding.verdict == "contradictory":
        conflict = finding.now.conflicts[0]
        return [
            (" ".join(filter(None, (place.source_url, edition_label(place.book, place.version)))), place.text)
            for place in (conflict.said, conflict.otherwise)
        ]
    shown = []
    if finding.verdict in ("broken", "changed") and finding.before is not None:
        shown += [("before", one.text) for one in finding.before.evidence[:1]]
    if finding.verdict in ("broken", "changed", "fixed"):
        shown += [("now", one.text) for one in finding.now.evidence[:1]]
    return shown
