"""Fits the threshold for answers without a key and their confidence; writes `src/chapterverse/answering/keyless.json`.

    KEYLESS_BOOKS=FOLDER python -m bench.keyless.fit

Uses the books of the splits `dev` and `dev_words` and the example book. All their questions and every second dialogue
are asked with refusals turned off. The curve for selected text is fitted on passages of these books (the one that
answers and the nearest one that does not) and on questions about short texts of public sets
(`questions/dev_selected.jsonl`), which the section reader was not trained on.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.results import ROOT, commit
from chapterverse.answering import confidence
from chapterverse.answering.confidence import KEYLESS, ModelSigns, ReaderSigns, fitted
from chapterverse.answering.reading import read_selection
from chapterverse.services import Services
from chapterverse.trained import shared_reader

from .__main__ import HOMES, foreign_questions
from .asking import Asked, ask, converse, opened
from .sets import QUESTIONS, BookSet, Question, load, share, short_texts, shows

# More of them separated one book better and the other one worse.
ANSWERABLE: Final = ("answers", "missing", "follow_up")
RIGHT: Final = ("answers", "lead", "follow_up")
SELECTION: Final = ("answers",)
SELECTION_REFUSED: Final = 0.8  # share of selections without the answer that should be refused
FALSE_ANSWERS: Final = 0.13  # share of close unanswerable questions that may be answered; higher on a new book
CAUTION: Final = 0.5  # standard deviations between books by which the confidence is lowered
DIALOGUES: Final = 2  # use every n-th dialogue
STRENGTH: Final = 0.05  # of the L2 regularisation


@dataclass(frozen=True, slots=True)
class Row:
    """A question with its signals: whether the book answers it, and whether the answer shows what its reader needs."""

    signs: ReaderSigns
    answerable: bool
    right: bool
    close: bool = True  # False: a question about another book
    book: str = ""


async def main() -> None:
    """Ask, fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--books", type=Path, default=Path(os.environ.get("KEYLESS_BOOKS", ".")), help="folder of the books"
    )
    parser.add_argument("--homes", type=Path, default=HOMES)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared/data", help="folder of the public sets")
    options = parser.parse_args()
    setattr(confidence, "answers", lambda *given: True)  # noqa: B010 - nothing is refused here
    setattr(confidence, "reader_confidence", lambda *given: 0.6)  # noqa: B010 - the curves may be of other signs
    everyday = {one.name: one.questions for one in load(options.books, "dev_words")}
    books = load(options.books, "dev")
    sets = [*(replace(one, questions=one.questions + everyday.get(one.name, ())) for one in books), example_set()]
    rows: list[Row] = []
    selections: list[Row] = []
    for one in sets:
        async with opened(options.homes / one.name, one.folder) as services:
            asked = [await ask(services, question) for question in one.questions]
            dialogues = [await converse(services, dialogue) for dialogue in one.dialogues[::DIALOGUES]]
            others = [await ask(services, question) for question in foreign_questions(sets, one)]
            selections += [row for each in asked for row in await _selections(each, services)]
        close = [*asked, *(turn for turns in dialogues for turn in turns[1:])]
        rows += [Row(each.signs, each.question.answerable, _right(each), book=one.name) for each in close]
        rows += [Row(each.signs, False, False, close=False, book=one.name) for each in others]
    selections += await short_texts_asked(options.shared)
    curves = fit(rows, selections) | {
        "fitted_on": [one.name for one in sets],
        "commit": commit(),
        "questions": len(rows),
    }
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in curves.items())
    KEYLESS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    fitted.cache_clear()
    print(json.dumps(curves, indent=1))


def example_set() -> BookSet:
    """The example book with its questions."""
    lines = (ROOT / "examples/questions.jsonl").read_text("utf-8").splitlines()
    questions = [
        Question(row["id"], row["question"], "example", (row["sentence"],) if row["answerable"] else ())
        for row in map(json.loads, lines)
    ]
    return BookSet("example", ROOT / "examples/book", tuple(questions), ())


def fit(rows: Sequence[Row], selections: Sequence[Row]) -> dict[str, Any]:
    """Fit the three curves."""
    answerable = logistic([row.signs for row in rows], [row.answerable for row in rows], ANSWERABLE)
    # Accuracy is fitted on answers to questions that the book answers or seems to answer.
    near = [row for row in rows if row.close]
    chances = _apply(answerable, [row.signs for row in near])
    alone = [at for at, row in enumerate(near) if not row.signs.follow_up]  # the promised rate is for these
    rates = _rates(chances[alone], [near[at].answerable for at in alone])
    least = min((row[0] for row in rates if row[1] <= FALSE_ANSWERS), default=0.5)
    shown = [row for row, chance in zip(near, chances, strict=True) if chance >= least]
    right = _cautious(shown)
    signs = [row.signs for row in selections]
    selection = logistic(signs, [row.answerable for row in selections], SELECTION)
    lies = _apply(selection, [row.signs for row in selections if not row.answerable])
    least_selected = round(float(np.quantile(lies, SELECTION_REFUSED)), 3)
    return {
        "answerable": answerable | {"false_answers": FALSE_ANSWERS, "rates": rates},
        "right": right,
        "selection": selection | {"threshold": least_selected},
    }


def _cautious(rows: Sequence[Row]) -> dict[str, Any]:
    """Fit the curve for the confidence. Its bias is lowered, because on a book that the curve was not fitted on, fewer
    answers may be right."""
    curve = logistic([row.signs for row in rows], [row.right for row in rows], RIGHT)
    shifts = []
    for book in sorted({row.book for row in rows}):
        own, others = [row for row in rows if row.book == book], [row for row in rows if row.book != book]
        left_out = logistic([row.signs for row in others], [row.right for row in others], RIGHT)
        shifts.append(_shift(left_out, own))
    lower = float(np.mean(shifts) - CAUTION * np.std(shifts))
    return curve | {"bias": round(curve["bias"] + min(0.0, lower), 4)}


def _shift(curve: dict[str, Any], rows: Sequence[Row]) -> float:
    """Return the shift of a curve's bias for which the curve's mean over these rows is the share of right answers."""
    signs, wanted = [row.signs for row in rows], np.mean([row.right for row in rows])
    low, high = -6.0, 6.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        below = _apply(curve | {"bias": curve["bias"] + middle}, signs).mean() < wanted
        low, high = (middle, high) if below else (low, middle)
    return low


def _right(asked: Asked) -> bool:
    return asked.question.answerable and shows(asked.question, asked.response.answer)


async def _selections(asked: Asked, services: Services) -> list[Row]:
    """Ask about passages as if a reader had selected them: one that answers, and the first that does not."""
    quotes = asked.question.quotes
    holding = [text for text in asked.search if any(share(quote, text) >= 0.9 for quote in quotes)][:1]
    without = [text for text in asked.search if all(share(quote, text) < 0.3 for quote in quotes)][:1]
    rows = []
    for text, answers in [*((text, True) for text in holding), *((text, False) for text in without)]:
        scope = await read_selection(asked.question.text, text, services.reader)
        rows.append(Row(ReaderSigns.of(scope, asked.question.text), answers, answers))
    return rows


async def short_texts_asked(shared: Path) -> list[Row]:
    """Questions about short texts. Half of them only seem to be answered by their text."""
    texts, reader, rows = dict(short_texts(shared)), shared_reader(), []
    for line in (QUESTIONS / "dev_selected.jsonl").read_text("utf-8").splitlines():
        asked = json.loads(line)
        scope = await read_selection(asked["question"], texts[asked["id"]], reader)
        rows.append(Row(ReaderSigns.of(scope, asked["question"]), "place" in asked, "place" in asked))
    return rows


def _rates(chances: NDArray[np.float64], answerable: Sequence[bool]) -> list[list[float]]:
    """Return for each threshold the share of unanswerable questions answered and of answerable questions refused."""
    is_answerable = np.array(answerable)
    rows = []
    for least in np.arange(0.05, 1.0, 0.05):
        false_answers = float((chances[~is_answerable] >= least).mean())
        false_refusals = float((chances[is_answerable] < least).mean())
        rows.append([round(float(least), 2), round(false_answers, 3), round(false_refusals, 3)])
    return rows


def logistic(signs: Sequence[ReaderSigns | ModelSigns], truths: Sequence[bool], names: Sequence[str]) -> dict[str, Any]:
    """Fit a logistic regression by Newton's method, with L2 regularisation, which makes the result unique."""
    features = np.array([[asdict(one)[name] for name in names] + [1.0] for one in signs], np.float64)
    wanted = np.array(truths, np.float64)
    weights = np.zeros(features.shape[1])
    pull = np.full(features.shape[1], STRENGTH * len(wanted) / 100)
    pull[-1] = 0.0
    for _ in range(50):
        chances = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        gradient = features.T @ (chances - wanted) + pull * weights
        curvature = (features.T * (chances * (1 - chances))) @ features + np.diag(pull + 1e-9)
        weights -= np.linalg.solve(curvature, gradient)
    named = {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=False)}
    return {"bias": round(float(weights[-1]), 4), "weights": named}


def _apply(curve: dict[str, Any], signs: Sequence[ReaderSigns]) -> NDArray[np.float64]:
    logits = [curve["bias"] + sum(w * getattr(one, name) for name, w in curve["weights"].items()) for one in signs]
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(np.array(logits), -30, 30)))
    return chances


if __name__ == "__main__":
    asyncio.run(main())
