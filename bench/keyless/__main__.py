"""`python -m bench.keyless`: asks everything, prints the figures and saves them by commit."""

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.results import ROOT, commit, save

from .asking import Asked, ask, converse, opened
from .figures import book_figures, confidence_figures, faults, followup_figures, percentile
from .sets import BookSet, Question, load, squad

HOMES = ROOT / ".cache" / "keyless"
OTHERS = 60  # how many questions about other books each book is asked


async def main() -> None:
    """Ask and report."""
    options = _options()
    sets = [one for one in load(options.books, options.split) if not options.book or one.name in options.book]
    result: dict[str, Any] = {"split": options.split}
    kept: list[Asked] = []
    for one in sets:
        others = foreign_questions(sets, one)
        async with opened(options.homes / one.name, one.folder) as services:
            asked = [await ask(services, question) for question in one.questions[: options.most]]
            foreign = [await ask(services, question) for question in others[: options.most]]
            dialogues = [await converse(services, dialogue) for dialogue in one.dialogues[: options.most]]
            made = await _headings(services, options.check // max(1, len(sets)))
        figures = book_figures(asked, foreign) if asked else {}
        if dialogues:
            figures |= followup_figures(dialogues)
        everything = [*asked, *(turn for dialogue in dialogues for turn in dialogue)]
        figures |= _checked([*everything, *made]) | _times(asked or everything)
        result[one.name] = figures
        kept += everything
        print(json.dumps({one.name: figures}, indent=1), flush=True)
    if options.squad:
        result["squad"] = await _squad(options.squad, options.homes, options.every)
        print(json.dumps({"squad": result["squad"]}, indent=1))
    result["all"] = confidence_figures([one for one in kept if one.answered])
    print(json.dumps({"all": result["all"]}, indent=1))
    _dump(kept, options.dump or HOMES / f"{options.split}-{commit()}.jsonl")
    if options.save:
        print(save(f"keyless-{options.split}", result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--books", type=Path, default=Path(os.environ.get("KEYLESS_BOOKS", ".")), help="folder of the books"
    )
    parser.add_argument("--split", default="test")
    parser.add_argument("--book", nargs="*", help="only these books")
    parser.add_argument("--homes", type=Path, default=HOMES, help="where the ingested books are kept")
    parser.add_argument("--squad", type=Path, help="SQuAD 2.0 as one gzipped JSON file")
    parser.add_argument("--every", type=int, default=4, help="take each n-th question of SQuAD")
    parser.add_argument("--check", type=int, default=2000, help="answers whose beginnings and ends are checked")
    parser.add_argument("--most", type=int, default=None, help="questions of each kind, for a quick look")
    parser.add_argument("--dump", type=Path, help="where questions and answers go, for people who read them")
    parser.add_argument("--save", action="store_true", help="keep the figures in bench/results")
    return parser.parse_args()


def foreign_questions(sets: Sequence[BookSet], book: BookSet) -> list[Question]:
    """Return questions that other books answer, including the example book."""
    example = [json.loads(line) for line in (ROOT / "examples/questions.jsonl").read_text("utf-8").splitlines()]
    rows = [Question(row["id"], row["question"], "foreign", ()) for row in example if row["answerable"]]
    if book.name == "example":
        rows = []
    for other in sets:
        if other.name not in (book.name, "example"):
            rows += [Question(one.id, one.text, "foreign", ()) for one in other.questions if one.answerable]
    return rows[:: max(1, len(rows) // OTHERS)]


async def _headings(services: Any, count: int) -> list[Asked]:
    """Ask the book's own headings, to check the form of the answers."""
    pages = await services.index.pages()
    headings = dict.fromkeys(f"{section.heading}" for page in pages for section in page.sections if section.heading)
    wanted = list(headings)[:: max(1, len(headings) // max(1, count))][:count]
    return [await ask(services, Question(heading, heading, "heading", ())) for heading in wanted]


def _checked(asked: Sequence[Asked]) -> dict[str, Any]:
    answered = [one for one in asked if one.answered]
    found = [fault for one in answered for fault in faults(one.response.answer)]
    return {"answers_checked": len(answered), "dangling_or_announcing": len(found), "faults": found[:10]}


def _times(asked: Sequence[Asked]) -> dict[str, float]:
    took = [one.response.metadata.query_time_ms for one in asked]
    return {"p50_ms": round(percentile(took, 0.5)), "p95_ms": round(percentile(took, 0.95))}


async def _squad(file: Path, homes: Path, every: int) -> dict[str, str]:
    """Selected text: whether the marked units contain the answer, and whether unanswerable questions are refused."""
    rights: list[bool] = []
    refused: list[bool] = []
    async with opened(homes / "selection", ROOT / "examples/book") as services:
        for case in squad(file, every=every):
            question = Question("", case.question, "selection", case.answers)
            one = await ask(services, question, selection=case.selection)
            if not case.answers:
                refused.append(not one.answered)
                continue
            marked = " ".join(
                case.selection[mark.start : mark.end] for source in one.response.sources for mark in source.highlights
            )
            rights.append(one.answered and any(answer in marked for answer in case.answers))
    return {
        "answered_right": f"{sum(rights)} of {len(rights)} ({sum(rights) / len(rights):.3f})",
        "unanswerable_refused": f"{sum(refused)} of {len(refused)} ({sum(refused) / len(refused):.3f})",
    }


def _dump(asked: Sequence[Asked], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8") as file:
        for one in asked:
            response = one.response
            row = {
                "id": one.question.id,
                "question": one.question.text,
                "answer": response.answer,
                "status": response.status,
                "confidence": response.confidence,
                "sources": [source.source_url for source in response.sources],
                "nearest": [section.source_url for section in response.nearest],
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"questions and answers: {target}")


if __name__ == "__main__":
    asyncio.run(main())
