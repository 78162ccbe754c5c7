"""Prints the progress of an ingest, ledgers, books and the calibration."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from chapterverse.api.pages import BookList
from chapterverse.calibration import Calibration
from chapterverse.editions import NAMELESS, edition_label
from chapterverse.ingestion.ledger import OUTCOMES, Ledger, places_before
from chapterverse.terminal import err, out, printable
from chapterverse.terminal.bars import WithBar

if TYPE_CHECKING:
    from chapterverse.evaluation.refusal_rate import RefusalRate
    from chapterverse.ingestion.pipeline import Progress  # imports every reader, which is slow
    from chapterverse.ingestion.sources import Source

PLAIN_EVERY: Final = 5.0  # seconds between two progress lines without a terminal
SHOWN_REASONS: Final = 12  # for skipped and failed pages; the ledger file has all
SHOWN_PAGES: Final = 3  # for each reason


class IngestProgress(WithBar):
    """A progress bar on a terminal; otherwise a plain line every few seconds."""

    def __init__(self) -> None:
        self._started = self._shown_at = time.monotonic()
        if err.is_terminal:
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("pages · {task.fields[passages]:,} passages · {task.fields[rate]:.1f}/s ·"),
                TimeElapsedColumn(),
                TextColumn("· left"),
                TimeRemainingColumn(),
                console=err,
                transient=True,
            )
            self._task = self._bar.add_task("reading", total=None, passages=0, rate=0.0)

    def __call__(self, progress: "Progress") -> None:
        """Show the progress."""
        now = time.monotonic()
        rate = progress.passages / max(now - self._started, 1e-6)
        if self._bar:
            self._bar.update(
                self._task, completed=progress.pages, total=progress.expected, passages=progress.passages, rate=rate
            )
        elif now - self._shown_at >= PLAIN_EVERY:
            self._shown_at = now
            err.print(self._line(progress, rate, now))

    def _line(self, progress: "Progress", rate: float, now: float) -> str:
        pages = f"{progress.pages:,}" + (f" of {progress.expected:,}" if progress.expected else "")
        left = ""
        if progress.expected and progress.pages:
            seconds = (now - self._started) / progress.pages * (progress.expected - progress.pages)
            left = f", about {_duration(seconds)} left"
        return f"{pages} pages, {progress.passages:,} passages embedded, {rate:.1f}/s{left}"


def show_ledger(ledger: Ledger, saved_in: str) -> None:
    """Print a summary of the run, with the reasons for skipped and failed pages."""
    counts = ", ".join(f"{ledger.count(outcome):,} {outcome}" for outcome in OUTCOMES if ledger.count(outcome))
    embedded = f"{ledger.passages_embedded:,} passage{'s' * (ledger.passages_embedded != 1)} embedded"
    err.print(f"{counts or 'no pages'} · {embedded} · {_duration(ledger.seconds)}")
    reasons = ledger.reasons(("skipped", "failed", "added", "changed", "removed"))
    for reason, pages in reasons[:SHOWN_REASONS]:
        named = ", ".join(pages[:SHOWN_PAGES]) + (", …" if len(pages) > SHOWN_PAGES else "")
        line = printable(f"  {len(pages):,} × {reason} ({named})")
        err.print(Text(line, style="dim" if reason.startswith("skipped") else "yellow"))
    if len(reasons) > SHOWN_REASONS:
        err.print(f"  … and {len(reasons) - SHOWN_REASONS} more reasons")
    _show_flagged(ledger)
    err.print(f"ledger: {saved_in}")
    if not ledger.generation:
        err.print("Nothing has changed; the book is the same.")


def warn_of_other_places(sources: Sequence["Source"], ledgers: Path, edition: str) -> None:
    """Warn of each source that was read from another, still existing place before: the pages from there are
    replaced."""
    for source in sources:
        before = places_before(ledgers, source.key, edition)
        others = [place for place in before if source.place not in before and os.path.exists(place)]  # noqa: PTH110 (Path.exists raises)
        if others:
            replaced = f"{printable(source.key)} was read from {printable(others[0])} before; its pages are replaced."
            advice = "To keep both, give one of them a --base-url or a --book of its own."
            err.print(Text(f"{replaced} {advice}", style="yellow"))


def _show_flagged(ledger: Ledger) -> None:
    """Print flagged text, which addresses a language model. It is not shown to a model and not quoted, and the author
    should check it."""
    flagged = [(row, order) for row in ledger if row.flags for order in row.orders]
    for row, order in flagged[:SHOWN_REASONS]:
        where = f"{printable(row.url)} › {printable(order.section)}"
        err.print(Text(f"  flagged ({', '.join(row.flags)}): {where}: “{printable(order.text)}”", style="yellow"))
    if len(flagged) > SHOWN_REASONS:
        err.print(f"  … and {len(flagged) - SHOWN_REASONS} more flagged places; the ledger has all")


def show_books(listed: BookList) -> None:
    """Print a line for each version of each book, the latest first."""
    for book in listed.books:
        for number, edition in enumerate(book.versions):
            name = printable(edition_label(book.name, edition.version) or NAMELESS)
            title = f"  {printable(book.title)}" if book.title != book.name else ""
            latest = "  latest" if not number and len(book.versions) > 1 else ""
            out.print(f"{edition.pages:>7,} page{'s' if edition.pages != 1 else ' '}  {name}{title}{latest}")


def show_calibration(calibration: Calibration) -> None:
    """Print the similarities of the calibration."""
    out.print(f"questions with a similarity of at least {calibration.answered:.2f} are answered")
    out.print(f"questions that the book answers usually have {calibration.usual:.2f}")


def show_refusal_rate(rate: "RefusalRate") -> None:
    """Print how readily the book answers without a key, and how many questions it refuses."""
    err.print(
        f"without a key: about {rate.false_answers:.0%} of questions that the book does not answer are answered, "
        f"{rate.false_refusals:.0%} of those that it answers are refused"
    )
    if rate.asked:
        err.print(
            f"headings of this book that are refused if asked as questions: {rate.refused} of {rate.asked}; "
            "to answer more or fewer questions: chapterverse calibrate --false-answers RATE"
        )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
