"""Runs the whole pipeline with a small real language model: `make eval-llm`, or `python -m bench.eval_llm [QUESTIONS]`.

Downloads a server and weights into `.cache/llm`, asks the example book's questions with some follow-ups and selections
through the evaluation harness, and writes `bench/results/eval-llm-COMMIT.json`: every measure of the harness, what
happened to the model's sentences, and every shown sentence that its quotes do not support. The last are found by a
check that shares no code with grounding. The model's replies are recorded, so that an interrupted run can continue.
"""

import asyncio
import logging
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.answering.support import unsupported

from bench.llm.installing import HOME, MODEL, MODEL_SHA256, install
from bench.llm.recording import LONGEST, Recorder, serving_records
from bench.llm.serving import serving_model
from bench.results import ROOT, commit, save
from chapterverse import __version__
from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.questions import Question, load_questions, set_digest
from chapterverse.evaluation.report import Run, make_report
from chapterverse.evaluation.runner import ask
from chapterverse.evaluation.statistics import wilson_interval
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.language import sentences
from chapterverse.services import Services
from chapterverse.settings import GENERATION_SECONDS, Settings
from chapterverse.wiring import open_services

PASSAGES: Final = 3  # instead of five: on a shared core the model reads 10 to 40 tokens a second
CALLS: Final = 1  # for each answer: if such a small model is offered a tool, it writes tool calls into its text
ROUNDS: Final = 6  # of asking and recording; several, because later requests for an answer depend on earlier replies
_MARKER: Final = re.compile(r"\s*\[\d+\]")
_WORD: Final = re.compile(r"\w+")
# Patterns that the independent check must not take for claims: a list number, a table rule, a phrase like "The text
# states that".
_NO_CLAIM: Final = re.compile(
    r"^\s*(?:\d+[.)]\s+|[|:\-\s]+$)|\bThe (?:passage|text|book|selection)(?: \d+)? (?:states|says|mentions) that ",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Quoted:
    """A citation in the form that the independent check takes."""

    quote: str
    page_title: str
    breadcrumb: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case with the model's own words."""

    case: Case
    written: tuple[str, ...]  # the model's sentences
    seconds: float  # time of all model calls for this question
    first: float  # time until the first word of the first call

    @property
    def shown(self) -> list[str]:
        """The sentences of the answer without markers. A refusal has none."""
        return _sentences(self.case.answer) if self.case.answered else []

    @property
    def replaced(self) -> int:
        """Return the book's own sentences that replaced a sentence of the model."""
        said = _words(" ".join(self.written))
        return sum(_words(sentence) not in said for sentence in self.shown)

    @property
    def unsupported(self) -> list[str]:
        """Shown sentences that their quotes do not support."""
        if not self.case.answered:
            return []
        shown_to_model = " ".join([*(one.text for one in self.case.passages), self.case.question.selection or ""])
        return unsupported(
            _claims(self.case.answer, shown_to_model),
            [Quoted(one.quote, one.page_title, one.section_heading) for one in self.case.citations],
        )


async def ask_all(questions: Sequence[Question], services: Services, recorder: Recorder) -> list[Outcome]:
    """Ask every question and return it with the model's reply."""
    outcomes = []
    for question in questions:
        recorder.served.clear()
        case = await ask(question, services)
        records = list(recorder.served)
        written = tuple(sentence for record in records for sentence in _sentences(record.text))
        first = records[0].first if records else 0.0
        outcomes.append(Outcome(case, written, sum(record.seconds for record in records), first))
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Count what happened to the model's sentences. Returns rows for the table."""
    asked = [one for one in outcomes if one.written]  # the others were refused before the model was called
    written = sum(len(one.written) for one in asked)
    shown = sum(len(one.shown) for one in asked)
    bad = sum(len(one.unsupported) for one in outcomes)
    seconds = [one.seconds for one in asked]
    rows: list[dict[str, Any]] = [
        _count("asked", "questions for which the model was asked", len(asked), len(outcomes)),
        _count("in_time", f"of them within {GENERATION_SECONDS:g} s on this machine",
               sum(value <= GENERATION_SECONDS for value in seconds), len(asked)),
        _count("written", "sentences that the model wrote", written),
        _count("shown", "sentences shown", shown),
        _count("replaced", "of them the book's own in the place of the model's", sum(one.replaced for one in asked)),
        _count("withheld", "sentences withheld", sum(one.case.withheld for one in asked)),
        _count("unsupported", "sentences shown that their quotes do not say", bad, max(shown, 1), bar="0"),
    ]  # fmt: skip
    if seconds:
        p50, p95 = np.quantile(seconds, (0.5, 0.95))
        rows.append(_plain("model_p50", "seconds of the model for an answer, p50", float(p50), len(seconds)))
        rows.append(_plain("model_p95", "seconds of the model for an answer, p95", float(p95), len(seconds)))
        first = float(np.quantile([one.first for one in asked], 0.5))
        rows.append(_plain("model_first", "seconds to its first word, p50", first, len(seconds)))
    return rows


def _count(key: str, label: str, count: int, of: int | None = None, bar: str = "") -> dict[str, Any]:
    if of is None:
        return _plain(key, label, count, count)
    low, high = wilson_interval(count, of)
    row = {"key": key, "label": label, "value": count / of, "low": low, "high": high, "n": of}
    return row | {"bar": bar or None, "reached": count == 0 if bar else None}


def _plain(key: str, label: str, value: float, n: int) -> dict[str, Any]:
    return {"key": key, "label": label, "value": value, "low": None, "high": None, "n": n, "bar": None, "reached": None}


def _claims(answer: str, passages: str) -> str:
    """Return an answer in the form that the independent check reads. Table headers that occur in a passage in the same
    form are removed, because the quote of a row does not contain the header."""
    lines = [line for line in _NO_CLAIM.sub("", answer).split("\n") if line.strip()]
    return "\n".join(
        line
        for line in lines
        if not line.startswith("|") or _MARKER.search(line) or _words(line) not in _words(passages)
    )


def _sentences(text: str) -> list[str]:
    return [
        said
        for line in text.split("\n")
        for start, end in sentences(line)
        if _WORD.search(said := _MARKER.sub("", line[start:end]).strip(" -*|`"))
    ]


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


async def answered(questions: Sequence[Question], address: str, recorder: Recorder) -> tuple[list[Outcome], Run]:
    """Ask all questions of the set, round by round, until every request of the product is recorded."""
    with tempfile.TemporaryDirectory() as folder, serving_records(recorder) as url:
        home = Path(folder)
        settings = Settings.load(
            chapterverse_home=home, database_url="postgresql://nobody@127.0.0.1:1/none", agent_top_k=PASSAGES,
            agent_max_turns=CALLS, openai_api_key="none", openai_model=MODEL.stem, openai_base_url=url,
        )  # fmt: skip
        async with open_services(settings) as services:
            book = open_source(str(ROOT / "examples" / "book"), SourceOptions())
            await ingest([book], Workshop(services.index, services.embedder, home))
            for _ in range(ROUNDS):
                outcomes = await ask_all(questions, services, recorder)
                if not recorder.missing:
                    break
                waiting = len(recorder.missing)
                for number, record in enumerate(recorder.fill(address), 1):
                    print(f"  {number}/{waiting}  {record.seconds:5.1f} s  {record.text[:90]!r}", flush=True)
            manifest = await services.index.manifest()
            run = Run(
                made_at=datetime.now(UTC), commit=commit(), version=__version__,
                questions="examples/questions.jsonl, bench/llm/questions.jsonl", digest=set_digest(questions),
                asked=len(questions), model=services.writer.engine, embeddings=manifest.fingerprint.model,
                index=services.index.engine, book=f"{manifest.pages} pages, {manifest.chunks} passages", concurrency=1,
            )  # fmt: skip
    return outcomes, run


def main() -> None:
    """Install, ask, save and print. The exit code is 1 if something unsupported was shown."""
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else None
    logging.getLogger("chapterverse").setLevel(logging.ERROR)  # nothing is stored here; do not warn each time
    install()
    questions = [
        *load_questions(ROOT / "examples" / "questions.jsonl"),
        *load_questions(Path(__file__).parent / "llm" / "questions.jsonl"),
    ][:limit]
    recorder = Recorder(HOME / "records", MODEL_SHA256)
    with serving_model() as address:
        outcomes, run = asyncio.run(answered(questions, address, recorder))
    report = make_report(run, [one.case for one in outcomes])
    rows = figures(outcomes)
    bad = [f"{one.case.question.id}: {sentence}" for one in outcomes for sentence in one.unsupported]
    said = [
        {"id": one.case.question.id, "written": one.written, "shown": one.shown, "seconds": one.seconds}
        for one in outcomes
    ]
    settings = {"passages": PASSAGES, "longest_answer_tokens": LONGEST, "model": MODEL.name, "sha256": MODEL_SHA256}
    harness = [_row_of(estimate.model_dump()) for estimate in report.estimates]
    target = save(
        "eval-llm",
        {"settings": settings, "figures": [*harness, *rows], "unsupported": bad, "said": said,
         "report": report.model_dump(mode="json")},
    )  # fmt: skip
    for row in (*harness, *rows):
        span = f"[{row['low']:.3f}, {row['high']:.3f}]" if row["low"] is not None else ""
        print(f"{row['label']:58} {row['value']:10.3f} {span:20} n={row['n']}")
    print("\n".join([*bad, str(target)]))
    sys.exit(1 if bad else 0)


def _row_of(estimate: dict[str, Any]) -> dict[str, Any]:
    """Convert an estimate of the harness to a row of our table. Times exclude the model: its replies are recorded."""
    kept = {name: estimate[name] for name in ("key", "label", "value", "low", "high")}
    kept["label"] += ", ours without the model's (ms)" if estimate["kind"] == "ms" else ""
    return {**kept, "n": estimate["questions"], "bar": None, "reached": None}


if __name__ == "__main__":
    main()
