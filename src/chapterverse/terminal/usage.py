"""How the report on what readers asked looks in a terminal. It is data and goes to stdout."""

from typing import Final

from rich.text import Text

from chapterverse.editions import NAMELESS, edition_label
from chapterverse.evaluation.usage import UsageReport
from chapterverse.evaluation.usage_page import TOLD, figures_of
from chapterverse.terminal import out, printable, show_note

SHOWN_GAPS: Final = 20
SHOWN_QUESTIONS: Final = 3  # of a group


def show_usage(report: UsageReport) -> None:
    """The counts, then the gaps, the most asked first."""
    out.print(Text(f"What readers asked, {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d}", style="bold"))
    for name, count in figures_of(report):
        out.print(f"{name:<16}{count:>8,}")
    for reason, count in report.reasons.items():
        out.print(f"{'  ' + reason.replace('_', ' '):<16}{count:>8,}")
    for edition in report.editions:
        name = printable(edition_label(edition.book, edition.version) or NAMELESS)
        counts = f"{edition.questions:,} asked, {edition.refused:,} refused, {edition.rated_down:,} rated down"
        out.print(f"{name}: {counts}")
    if not report.gaps:
        show_note("\nNo question was refused, answered with low confidence or rated down.")
        return
    out.print(Text(f"\nWhat the book lacks: {len(report.gaps)} groups of questions", style="bold"))
    for number, gap in enumerate(report.gaps[:SHOWN_GAPS], 1):
        counts = ", ".join(f"{count} {TOLD[trouble]}" for trouble, count in gap.troubles.items())
        out.print(Text.assemble((f"\n{number}. {printable(gap.name)}", "bold"), f"  ({gap.asked}× asked; {counts})"))
        for one in gap.questions[:SHOWN_QUESTIONS]:
            out.print(f"   - {printable(one.question)}")
        if len(gap.questions) > SHOWN_QUESTIONS:
            out.print(f"   … and {len(gap.questions) - SHOWN_QUESTIONS} more")
        for section in gap.nearest[:1]:
            out.print(f"   nearest: {printable(section.place)} — {printable(section.source_url)}", style="dim")
        if gap.missing_words:
            out.print(f"   the book lacks: {printable(', '.join(gap.missing_words))}", style="dim")
    if len(report.gaps) > SHOWN_GAPS:
        show_note(f"\n… and {len(report.gaps) - SHOWN_GAPS} more; --json and --out have all.")
