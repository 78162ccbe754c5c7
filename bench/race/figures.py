"""The arithmetic of the race: medians over rounds, bars, descriptions of failures, and the table.

Pure functions over plain values.
"""

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from bench.race.racers import CONTROL, FLOOR, OURS, OURS_KEYLESS, OURS_LOCAL, OURS_UNJUDGED

Results = dict[str, dict[str, list[Any]]]  # racer → figure → one value for each round
Summary = dict[str, dict[str, Any]]

NOT_PEERS: Final = (FLOOR, CONTROL, OURS, OURS_LOCAL, OURS_KEYLESS, OURS_UNJUDGED)
_MARGIN: Final = 1.05
_JUDGED_MARGIN: Final = 1.35  # with a judge the reader waits for one more short call

ROWS: Final = (
    ("installed, MB", "installed_mb"),
    ("distributions", "distributions"),
    ("import, s", "import_s"),
    ("cold start to the first answer, s", "cold_s"),
    ("memory after load, MB (PSS, all processes)", "memory_mb"),
    ("instant model, 1 at once: p50 / p95, ms", ("c1.p50_ms", "c1.p95_ms")),
    ("10 at once: p50 / p95, ms", ("c10.p50_ms", "c10.p95_ms")),
    ("10 at once: answers/s", "c10.rate"),
    ("50 at once: p50 / p95, ms", ("c50.p50_ms", "c50.p95_ms")),
    ("50 at once: answers/s", "c50.rate"),
    ("CPU per answer at 10, ms", "c10.cpu_ms"),
    ("realistic model: first event p50 / p95, ms", ("real.first_event_p50_ms", "real.first_event_p95_ms")),
    ("first text (ours: verified) p50, ms", "real.first_text_p50_ms"),
    ("end to end p50 / p95, ms", ("real.p50_ms", "real.p95_ms")),
    ("model calls per question", "real.calls"),
    ("prompt tokens per question", "real.prompt_tokens"),
    ("calls / tokens of the judge per question", ("real.judge_calls", "real.judge_tokens")),
    ("ingest with the embedder, pages/s", "ingest_pages_s"),
    ("ingest, vectors for free, pages/s", "ingest_free_pages_s"),
    ("requests that failed", "failed"),
)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies. Infinity for an empty list."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


def load_figures(latencies: Sequence[float], wall: float, cpu: float) -> dict[str, float]:
    """The figures of one load. Times are given in seconds."""
    count = len(latencies)
    return {
        "p50_ms": round(percentile(latencies, 0.5) * 1000, 1),
        "p95_ms": round(percentile(latencies, 0.95) * 1000, 1),
        "rate": round(count / wall, 2) if wall else 0.0,
        "cpu_ms": round(cpu / count * 1000, 2) if count else 0.0,
    }


def summarise(results: Results) -> Summary:
    """The median of each figure over its rounds. Failures are summed, texts are kept."""
    summary: Summary = {}
    for racer, figures in results.items():
        row: dict[str, Any] = {}
        for name, values in figures.items():
            if name == "failed":
                row[name] = sum(values)
            elif all(isinstance(value, int | float) for value in values):
                row[name] = round(median(values), 3)
            else:
                row[name] = values[-1]
        summary[racer] = row
    return summary


def spread(results: Results) -> dict[str, float]:
    """Return the ratios between the floor and its control, which is the same service under another name. Smaller
    differences between services are noise."""
    summary = summarise(results)
    floor, control = summary.get(FLOOR, {}), summary.get(CONTROL, {})
    return {
        name: round(control[name] / floor[name], 3)
        for name in ("cold_s", "c1.p50_ms", "c10.rate", "c50.rate", "c10.cpu_ms", "real.p50_ms")
        if floor.get(name) and control.get(name)
    }


def bars(summary: Summary) -> list[tuple[str, bool, str]]:
    """Each bar of the race: its description, whether it is met, and the figures."""
    ours, floor = summary.get(OURS, {}), summary.get(FLOOR, {})
    peers = {name: figures for name, figures in summary.items() if name not in NOT_PEERS}
    judged: list[tuple[str, bool, str]] = []

    def least(figure: str) -> float:
        return min((figures[figure] for figures in peers.values() if figure in figures), default=float("inf"))

    def most(figure: str) -> float:
        return max((figures[figure] for figures in peers.values() if figure in figures), default=0.0)

    def judge(words: str, figure: str, limit: float, *, above: bool = False, of: Mapping[str, Any] = ours) -> None:
        if figure in of:
            value = of[figure]
            judged.append((words, value > limit if above else value < limit, f"{value:g} against {limit:g}"))

    unjudged = summary.get(OURS_UNJUDGED, {})
    if "real.p50_ms" in floor:
        limit = round(floor["real.p50_ms"] * _JUDGED_MARGIN, 1)
        judge("end to end with a judge within 35 % of the floor", "real.p50_ms", limit)
        limit = round(floor["real.p50_ms"] * _MARGIN, 1)
        judge("end to end without a judge within 5 % of the floor", "real.p50_ms", limit, of=unjudged)
    judge("first verified text p50 under 1.3 s", "real.first_text_p50_ms", 1300.0)
    judge("end to end without a judge ahead of every peer", "real.p50_ms", least("real.p50_ms"), of=unjudged)
    judge("answers/s at 10 above every peer", "c10.rate", most("c10.rate"), above=True)
    judge("first event p95 under 60 ms", "real.first_event_p95_ms", 60.0)
    for name in (OURS, OURS_KEYLESS):
        judge(f"cold start under 3 s: {name}", "cold_s", 3.0, of=summary.get(name, {}))
        judge(f"cold start below every peer: {name}", "cold_s", least("cold_s"), of=summary.get(name, {}))
    memory = summary.get("llamaindex", {}).get("memory_mb", float("inf"))
    for name in (OURS, OURS_KEYLESS):
        judge(f"memory below LlamaIndex: {name}", "memory_mb", memory, of=summary.get(name, {}))
    judge("ingest pages/s above every peer", "ingest_pages_s", most("ingest_pages_s"), above=True)
    return judged


def outcome(status: int, body: bytes, *, complete: bool, stream_end: bytes, stream_error: bytes) -> str:
    """Describe in a few words what a reader got when something failed. `stream_end` is empty for a JSON answer."""
    if status == 0:
        return "no reply"
    if status != 200:
        return f"{status}, says why" if _says_why(body) else f"bare {status}"
    if stream_end and stream_end not in body:
        if stream_error in body:
            return "error event"
        return "cut, no error event"
    if not complete:
        return "cut, no error event"
    return "answer"


def _says_why(body: bytes) -> bool:
    try:
        said = json.loads(body)
    except ValueError:
        return False
    return isinstance(said, dict) and bool(said.get("error_code") or said.get("error"))


def markdown(summary: Summary) -> str:
    """The figures and the failures as two tables, one column per service."""
    names = [name for name in summary if name != CONTROL]
    lines = [_row("", names), _row("---", ["---"] * len(names))]
    for words, figure in ROWS:
        parts = (figure,) if isinstance(figure, str) else figure
        cells = [" / ".join(_cell(summary[name].get(part)) for part in parts) for name in names]
        if any(cell.strip("–/ ") for cell in cells):
            lines.append(_row(words, cells))
    faults = dict.fromkeys(key for name in names for key in summary[name] if key.startswith("fault "))
    if faults:
        lines += ["", _row("when", names), _row("---", ["---"] * len(names))]
        lines += [_row(key.removeprefix("fault "), [_cell(summary[n].get(key)) for n in names]) for key in faults]
    return "\n".join(lines)


def _row(head: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([head, *cells])} |"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return str(value)
