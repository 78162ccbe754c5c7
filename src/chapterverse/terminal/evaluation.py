"""Prints the results of `eval`, `judge-check`, `check`, `verify` and `report`.

Tables are data and go to stdout; progress and the paths of files go to stderr.
"""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from chapterverse.editions import NAMELESS, edition_label
from chapterverse.evaluation.book_check import SORTS, Baseline, CheckFinding, explained, headline
from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.comparing import Comparison
from chapterverse.evaluation.judge_check import JudgeReport
from chapterverse.evaluation.measures import right
from chapterverse.evaluation.proofs import Proof, QuoteCheck, unproven
from chapterverse.evaluation.quotes import State
from chapterverse.evaluation.report import Report, failing
from chapterverse.evaluation.report_page import formatted
from chapterverse.evaluation.usage import UsageReport
from chapterverse.evaluation.usage_page import LACKING, UNSURE, figures_of
from chapterverse.terminal import err, one_line, out, printable, show_note, show_warning
from chapterverse.terminal.bars import WithBar

PLAIN_EVERY: Final = 5.0  # seconds between two progress lines without a terminal
SHOWN_FAILING: Final = 10
_LABEL: Final = 50  # columns
_CHANGE_COLOURS: Final = {"better": "green", "worse": "red", "different": "yellow"}
_VERDICT_COLOURS: Final = {
    "broken": "bold red",
    "contradictory": "bold yellow",
    "failed": "bold red",
    "unsure": "bold yellow",
    "fixed": "bold green",
}
_STATE_COLOURS: Final[dict[State, str]] = {
    "stands": "green",
    "moved": "yellow",
    "changed": "bold red",
    "gone": "bold red",
}
_QUOTED: Final = 200  # characters of evidence that `check` shows
SHOWN_QUOTE: Final = 300  # characters of a quote that `verify` shows
SHOWN_GAPS: Final = 20
SHOWN_QUESTIONS: Final = 3  # of a group


class EvaluationProgress(WithBar):
    """A progress bar on a terminal; otherwise a plain line every few seconds."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._done = self._wrong = 0
        self._shown_at = time.monotonic()
        if err.is_terminal:
            columns = (TextColumn("asking"), BarColumn(bar_width=24), MofNCompleteColumn())
            wrong = TextColumn("questions · {task.fields[wrong]} went wrong ·")
            rest = (TimeElapsedColumn(), TextColumn("· left"), TimeRemainingColumn())
            self._bar = Bar(*columns, wrong, *rest, console=err, transient=True)
            self._task = self._bar.add_task("asking", total=expected, wrong=0)

    def __call__(self, case: Case) -> None:
        """Count a finished question."""
        self._done += 1
        self._wrong += case.status == "failed" or right(case) is False
        if self._bar:
            self._bar.update(self._task, completed=self._done, wrong=self._wrong)
        elif time.monotonic() - self._shown_at >= PLAIN_EVERY:
            self._shown_at = time.monotonic()
            err.print(f"{self._done} of {self._expected} questions, {self._wrong} went wrong")


def show_report(report: Report) -> None:
    """Print the measures with their intervals, the confidence levels, and the questions that went wrong."""
    group = ""
    out.print(Text(f"{'':<{_LABEL}}  {'value':>8}  {'95 % interval':>20}  questions", style="dim"))
    for estimate in report.estimates:
        if estimate.group != group:
            group = estimate.group
            out.print(Text(group, style="bold"))
        between = f"{formatted(estimate.low, estimate.kind)} to {formatted(estimate.high, estimate.kind)}"
        value = formatted(estimate.value, estimate.kind)
        out.print(f"  {estimate.label:<{_LABEL - 2}}  {value:>8}  {between:>20}  {estimate.questions:>9}")
    for level in report.levels:
        label = f"right, of answers with {level.label} confidence"
        between = f"{level.low:.1%} to {level.high:.1%}"
        out.print(f"  {label:<{_LABEL - 2}}  {level.right:>8.1%}  {between:>20}  {level.answers:>9}")
    if report.kinds:
        out.print(Text("Kinds of questions", style="bold"))
    for kind in report.kinds:
        between = f"{kind.low:.1%} to {kind.high:.1%}"
        label = f"right, of {printable(kind.label)}"
        out.print(f"  {label:<{_LABEL - 2}}  {kind.right:>8.1%}  {between:>20}  {kind.questions:>9}")
    wrong = failing(report.cases)
    if wrong:
        out.print(Text(f"\nWent wrong ({len(wrong)})", style="bold"))
    for case in wrong[:SHOWN_FAILING]:
        wanted = "a refusal" if not case.question.answerable else "other evidence" if case.answered else "an answer"
        what = case.error or f"{case.status}; wanted {wanted}"
        out.print(f"  {printable(case.question.id)}  {printable(case.question.question)}  ({printable(what)})")
    if len(wrong) > SHOWN_FAILING:
        out.print(f"  … and {len(wrong) - SHOWN_FAILING} more")
    if report.run.interrupted:
        show_warning(f"interrupted: only {len(report.cases)} of {report.run.asked} questions were asked.")


def show_comparison(comparison: Comparison) -> None:
    """Print the changes of measures and questions."""
    for note in comparison.notes:
        show_note(note)
    heads = f"{'':<{_LABEL}}  {'before':>8}  {'after':>8}  {'difference, 95 %':>26}  {'p':>6}  verdict"
    out.print(Text(heads, style="dim"))
    for change in comparison.changes:
        between = f"{_signed(change.low, change.kind)} to {_signed(change.high, change.kind)}"
        p = "" if change.p is None else f"{change.p:.3f}"
        before, after = formatted(change.before, change.kind), formatted(change.after, change.kind)
        line = f"{change.label:<{_LABEL}}  {before:>8}  {after:>8}  "
        out.print(
            Text.assemble(line, f"{between:>26}  {p:>6}  ", (change.verdict, _CHANGE_COLOURS.get(change.verdict, "")))
        )
    if comparison.turnabouts:
        out.print(Text(f"\nQuestions that came out differently ({len(comparison.turnabouts)})", style="bold"))
    for turn in comparison.turnabouts:
        out.print(f"  {printable(turn.id)}  {printable(turn.question)}  ({turn.before} → {turn.after})")
    result = "The difference is more than noise." if comparison.more_than_noise else "No difference beyond noise."
    out.print(f"\n{comparison.shared} questions in both. {result}")


def _signed(value: float, kind: str) -> str:
    return ("+" if value > 0 else "−" if value < 0 else "±") + formatted(abs(value), kind)


def show_judge_report(report: JudgeReport) -> None:
    """Print how many claims a model passed, its cost, and whether it is fit to judge."""
    rows = (
        ("true claims passed", f"{report.true_passed} of {report.true_claims}"),
        ("false claims passed", f"{report.false_passed} of {report.false_claims}"),
        ("claims without a verdict", str(report.unanswered)),
        ("seconds a claim", f"{report.seconds_per_claim:.2f}"),
        ("tokens a claim", f"{report.tokens_per_claim:.0f}"),
    )
    for label, value in rows:
        out.print(f"{label:<26}{value}")
    if report.false_passed_by_kind:
        kinds = ", ".join(f"{kind} {count}" for kind, count in report.false_passed_by_kind.items())
        out.print(f"{'false passed, by kind':<26}{kinds}")
    out.print(Text(f"\n{report.model}: {report.verdict}. {report.advice}", style="bold"))


def show_findings(findings: Sequence[CheckFinding], baseline: Baseline, now: Baseline) -> None:
    """Print all questions whose outcome has changed."""
    for name, before, after in (
        ("model", baseline.model, now.model),
        ("embeddings", baseline.embeddings, now.embeddings),
    ):
        if before != after:
            show_note(
                f"The baseline was made with another {name} ({before}; now {after}), which can make a difference."
            )
    for verdict, title in SORTS:
        found = [finding for finding in findings if finding.verdict == verdict]
        if found:
            out.print(Text(f"{title} ({len(found)})", style=_VERDICT_COLOURS.get(verdict, "bold")))
        for finding in found:
            out.print(f"  {printable(finding.now.id)}  {printable(finding.now.question)}")
            out.print(Text(f"      {printable(' '.join(explained(finding)))}", style="dim"))
            for label, text in _quotes(finding):
                out.print(Text(f"      {label}: {one_line(text, _QUOTED)}", style="dim"))
    out.print(f"{len(findings)} question{'s' * (len(findings) != 1)}: {headline(findings)}.")


def _quotes(finding: CheckFinding) -> list[tuple[str, str]]:
    if finding.verdict == "contradictory":
        conflict = finding.now.conflicts[0]
        return [
            (" ".join(filter(None, (place.source_url, edition_label(place.book, place.version)))), place.text)
            for place in (conflict.said, conflict.otherwise)
        ]
    shown = []
    if finding.verdict in ("broken", "unsure", "changed") and finding.before is not None:
        shown += [("before", passage.text) for passage in finding.before.evidence[:1]]
    if finding.verdict in ("broken", "changed", "fixed"):
        shown += [("now", passage.text) for passage in finding.now.evidence[:1]]
    return shown


def show_checks(proof: Proof, checks: Sequence[QuoteCheck]) -> None:
    """Print each quote and its state."""
    for check in checks:
        out.print(Text.assemble(f"[{check.number}] ", (check.state, _STATE_COLOURS[check.state]), "  ", _where(check)))
        out.print(Text(f"    {one_line(check.quote.text, SHOWN_QUOTE)}", style="dim"))
        if check.state == "changed":
            out.print(f"    now: {one_line(check.now, SHOWN_QUOTE)}")
    failed = unproven(proof, checks)
    for statement in failed:
        out.print(Text.assemble(("no longer proven: ", "bold"), one_line(statement.text, SHOWN_QUOTE)))
    counts = Counter(check.state for check in checks)
    summary = ", ".join(f"{counts[state]} {state}" for state in _STATE_COLOURS if counts[state])
    out.print(f"{len(checks)} quote{'s' * (len(checks) != 1)}{': ' + summary if summary else ''}.")


def _where(check: QuoteCheck) -> str:
    quote = check.quote
    place = "  ".join(filter(None, (quote.source_url, edition_label(quote.book, quote.version))))
    to_another = check.state != "gone" and check.url and not quote.source_url.startswith(check.url)
    return printable(f"{place} → {check.url}" if to_another else place)


def show_usage(report: UsageReport) -> None:
    """Print the counts, then the gaps, the most asked first."""
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
    sure = sum(gap.sure for gap in report.gaps)
    for number, gap in enumerate(report.gaps[:SHOWN_GAPS], 1):
        if number in (1, sure + 1):
            (title, note), groups = (LACKING, sure) if gap.sure else (UNSURE, len(report.gaps) - sure)
            out.print(Text(f"\n{title}: {groups} group{'s' * (groups != 1)} of questions", style="bold"))
            out.print(note, style="dim")
        out.print(
            Text.assemble((f"\n{number}. {printable(gap.name)}", "bold"), f"  ({gap.asked}× asked; {gap.counts})")
        )
        for question in gap.questions[:SHOWN_QUESTIONS]:
            out.print(f"   - {printable(question.question)}")
        if len(gap.questions) > SHOWN_QUESTIONS:
            out.print(f"   … and {len(gap.questions) - SHOWN_QUESTIONS} more")
        for section in gap.nearest[:1]:
            out.print(f"   nearest: {printable(section.place)} — {printable(section.source_url)}", style="dim")
        if gap.missing_words:
            out.print(f"   the book lacks: {printable(', '.join(gap.missing_words))}", style="dim")
    if len(report.gaps) > SHOWN_GAPS:
        show_note(f"\n… and {len(report.gaps) - SHOWN_GAPS} more; --json and --out have all.")
