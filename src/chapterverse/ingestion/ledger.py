"""The ledger of an ingest run: the outcome of every page, with the reason."""

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

Outcome = Literal["added", "changed", "unchanged", "removed", "skipped", "failed"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("added", "changed", "unchanged", "removed", "skipped", "failed")
KEPT_LEDGERS: Final = 50  # files; older ones are deleted
ORDER_CHARS: Final = 160  # of an instruction in the ledger; the rest is cut off


@dataclass(frozen=True, slots=True)
class Order:
    """An instruction to a language model in a page, and its section."""

    section: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one page."""

    url: str
    outcome: Outcome
    why: str = ""
    chunks: int = 0
    flags: tuple[str, ...] = ()
    orders: tuple[Order, ...] = ()  # the instructions that caused the flag


@dataclass(slots=True)
class Ledger:
    """All rows of one run, in order."""

    sources: tuple[str, ...]
    edition: str = ""  # key of the ingested edition, `book@version`
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    rows: list[Row] = field(default_factory=list)
    passages_embedded: int = 0
    generation: str = ""  # the published generation; empty if nothing changed
    seconds: float = 0.0
    embedding_seconds: float = 0.0
    places: tuple[str, ...] = ()  # where each source was read from

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def write(self, row: Row) -> None:
        """Add a row."""
        self.rows.append(row)

    def count(self, outcome: Outcome) -> int:
        """The number of pages with this outcome."""
        return sum(row.outcome == outcome for row in self.rows)

    def changed_anything(self) -> bool:
        """Whether the book changed."""
        return any(row.outcome in ("added", "changed", "removed") for row in self.rows)

    def reasons(self, outcomes: Iterable[Outcome]) -> list[tuple[str, list[str]]]:
        """The reasons of these outcomes with their pages, the most frequent first."""
        wanted = set(outcomes)
        pages: dict[str, list[str]] = {}
        for row in self.rows:
            if row.outcome in wanted and row.why:
                pages.setdefault(f"{row.outcome}: {row.why}", []).append(row.url)
        return sorted(pages.items(), key=lambda reason: -len(reason[1]))

    def summary(self) -> dict[str, Any]:
        """The counts of the run."""
        return {
            "sources": list(self.sources),
            "places": list(self.places),
            "edition": self.edition,
            "started_at": self.started_at.isoformat(),
            "seconds": round(self.seconds, 3),
            "embedding_seconds": round(self.embedding_seconds, 3),
            "passages_embedded": self.passages_embedded,
            "generation": self.generation,
            **{outcome: self.count(outcome) for outcome in OUTCOMES},
        }

    def to_json(self) -> str:
        """The run with all rows, as JSON."""
        return json.dumps(self.summary() | {"pages": [asdict(row) for row in self.rows]}, indent=1)

    def save(self, folder: Path) -> Path:
        """Write the run as JSON and delete all but the newest `KEPT_LEDGERS` files."""
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{self.started_at:%Y%m%dT%H%M%S.%fZ}.json"
        scratch = target.with_suffix(".tmp")
        scratch.write_text(self.to_json(), "utf-8")
        scratch.replace(target)
        for old in sorted(folder.glob("*.json"))[:-KEPT_LEDGERS]:
            old.unlink(missing_ok=True)
        return target


def places_before(folder: Path, source: str, edition: str) -> list[str]:
    """The places from which a source of an edition was read in its last run; empty if they are not known."""
    for path in sorted(folder.glob("*.json"), reverse=True):
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            run = json.loads(path.read_text("utf-8"))
            read = zip(run.get("sources", ()), run.get("places", ()), strict=False)
            places = [str(place) for key, place in read if key == source and run.get("edition", "") == edition]
            if places:
                return places
    return []
