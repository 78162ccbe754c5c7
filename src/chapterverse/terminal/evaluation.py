"""How evaluations look: progress, the table of measures, comparisons.

Tables are data and go to stdout; progress and where files are to stderr.
"""

import time
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.comparing import Comparison
from chapterverse.evaluation.judge_check import JudgeReport
from chapterverse.evaluation.measures import right
from chapterverse.evaluation.page import told
from chapterverse.evaluation.report import Report, failing
from chapterverse.terminal import err, out, printable, show_note, show_warning
from chapterverse.terminal.bars import WithBar

PLAIN_EVERY: Final = 5.0  # seconds between two progress lines where there is no terminal
SHOWN_FAILING: Final = 10
_LABEL: Final = 50  # columns
_COLOURS: Final = {"better": "green", "worse": "red", "different": "yellow"}


class EvaluationProgress(WithBar):
    """A bar on a terminal, a plain line every few seconds elsewhere."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._done = self._wrong = 0
        self._told_at = time.monotonic()
        if err.is_terminal:
            columns = (TextColumn("asking"), BarColumn(bar_width=24), MofNCompleteColumn())
            wrong = TextColumn("questions · {task.fields[wrong]} went wrong ·")
            rest = (TimeElapsedColumn(), TextColumn("· left"), TimeRemainingColumn())
            self._bar = Bar(*columns, wrong, *rest, console=err, transient=True)
            self._task = self._bar.add_task("asking", total=expected, wrong=0)

    def __call__(self, case: Case) -> None:
        """Show that one more is done."""
        self._done += 1
        self._wrong += case.status == "failed" or right(case) is False
        if self._bar:
            self._bar.update(self._task, completed=self._done, wrong=self._wrong)
        elif time.monotonic() - self._told_at >= PLAIN_EVERY:
            self._told_at = time.monotonic()
            err.print(f"{self._done} of {self._expected} questions, {self._wrong} went wrong")


def show_report(report: Report) -> None:
    """The measures with their intervals, the confidence levels, and which questions went wrong."""
    group = ""
    out.print(Text(f"{'':<{_LABEL}}  {'value':>8}  {'95 % interval':>20}  questions", style="dim"))
    for one in report.estimates:
        if one.group != group:
            group = one.group
            out.print(Text(group, style="bold"))
        between = f"{told(one.low, one.kind)} to {told(one.high, one.kind)}"
        out.print(f"  {one.label:<{_LABEL - 2}}  {told(one.value, one.kind):>8}  {between:>20}  {one.questions:>9}")
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
    """What changed per measure and per question."""
    for note in comparison.notes:
        show_note(note)
    heads = f"{'':<{_LABEL}}  {'before':>8}  {'after':>8}  {'difference, 95 %':>26}  {'p':>6}  verdict"
    out.print(Text(heads, style="dim"))
    for one in comparison.changes:
        between = f"{_signed(one.low, one.kind)} to {_signed(one.high, one.kind)}"
        p = "" if one.p is None else f"{one.p:.3f}"
        line = f"{one.label:<{_LABEL}}  {told(one.before, one.kind):>8}  {told(one.after, one.kind):>8}  "
        out.print(Text.assemble(line, f"{between:>26}  {p:>6}  ", (one.verdict, _COLOURS.get(one.verdict, ""))))
    if comparison.turnabouts:
        out.print(Text(f"\nQuestions that came out differently ({len(comparison.turnabouts)})", style="bold"))
    for turn in comparison.turnabouts:
        out.print(f"  {printable(turn.id)}  {printable(turn.question)}  ({turn.before} → {turn.after})")
    said = "More than noise." if comparison.more_than_noise else "Nothing that is more than noise."
    out.print(f"\n{comparison.shared} questions in both. {said}")


def _signed(value: float, kind: str) -> str:
    return ("+" if value > 0 else "−" if value < 0 else "±") + told(abs(value), kind)


def show_judge_report(report: JudgeReport) -> None:
    """What a model passed, what it took, and whether it is fit to judge."""
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
