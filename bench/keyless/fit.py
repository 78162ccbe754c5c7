"""Fits when to answer without a key and how sure to be, and writes `src/chapterverse/answering/keyless.json`.

    KEYLESS_BOOKS=FOLDER python -m bench.keyless.fit

Takes the books of the split `dev` and the example book. Their questions are asked as if nothing were ever refused. The
curves for selected text are fitted on passages of these books, the one that answers and the nearest that does not.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.results import ROOT, commit
from chapterverse.answering import story
from chapterverse.answering.confidence import FITTED, ReaderSigns, fitted
from chapterverse.answering.reading import read_selection
from chapterverse.services import Services

from .__main__ import HOMES, foreign_questions
from .asking import Asked, ask, opened
from .sets import BookSet, Question, load, share, shows

# More of them told one book apart better and the other one worse.
ANSWERABLE: Final = ("answers", "missing")
RIGHT: Final = ("answers", "lead")
SELECTION: Final = ("answers",)
SELECTION_REFUSED: Final = 0.8  # share of selections without the answer that are to be refused
FALSE_ANSWERS: Final = 0.16  # share of close questions without an answer that may be answered
STRENGTH: Final = 0.05  # of the pull of weights towards 0


@dataclass(frozen=True, slots=True)
class Row:
    """A question with its signs: whether the book answers it, and whether what was shown is what its reader needs."""

    signs: ReaderSigns
    answerable: bool
    right: bool
    close: bool = True  # False: about another book


async def main() -> None:
    """Ask, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--books", type=Path, default=Path(os.environ.get("KEYLESS_BOOKS", ".")), help="folder of the books"
    )
    parser.add_argument("--homes", type=Path, default=HOMES)
    options = parser.parse_args()
    setattr(story, "answers", lambda *given: True)  # noqa: B010 - nothing is refused here
    setattr(story, "reader_confidence", lambda *given: 0.6)  # noqa: B010 - the curves may be of other signs
    sets = [*load(options.books, "dev"), example_set()]
    rows: list[Row] = []
    selections: list[Row] = []
    for one in sets:
        async with opened(options.homes / one.name, one.folder) as services:
            asked = [await ask(services, question) for question in one.questions]
            others = [await ask(services, question) for question in foreign_questions(sets, one)]
            selections += [row for each in asked for row in await _selections(each, services)]
        rows += [Row(each.signs, each.question.answerable, _right(each)) for each in asked]
        rows += [Row(each.signs, False, False, close=False) for each in others]
    curves = fit(rows, selections) | {
        "fitted_on": [one.name for one in sets],
        "commit": commit(),
        "questions": len(rows),
    }
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in curves.items())
    FITTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
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
    """The four curves."""
    answerable = _logistic([row.signs for row in rows], [row.answerable for row in rows], ANSWERABLE)
    # How often an answer is right is asked of answers to questions that the book answers or seems to answer.
    near = [row for row in rows if row.close]
    chances = _apply(answerable, [row.signs for row in near])
    rates = _rates(chances, [row.answerable for row in near])
    least = min((row[0] for row in rates if row[1] <= FALSE_ANSWERS), default=0.5)
    shown = [row for row, chance in zip(near, chances, strict=True) if chance >= least]
    right = _logistic([row.signs for row in shown], [row.right for row in shown], RIGHT)
    signs = [row.signs for row in selections]
    selection = _logistic(signs, [row.answerable for row in selections], SELECTION)
    lies = _apply(selection, [row.signs for row in selections if not row.answerable])
    least_selected = round(float(np.quantile(lies, SELECTION_REFUSED)), 3)
    return {
        "answerable": answerable | {"false_answers": FALSE_ANSWERS, "rates": rates},
        "right": right,
        "selection_answerable": selection | {"threshold": least_selected},
        "selection_right": selection,
    }


def _right(asked: Asked) -> bool:
    return asked.question.answerable and shows(asked.question, asked.response.answer)


async def _selections(asked: Asked, services: Services) -> list[Row]:
    """Passages as if a reader had selected them: one that answers, and the first that does not."""
    quotes = asked.question.quotes
    holding = [text for text in asked.search if any(share(quote, text) >= 0.9 for quote in quotes)][:1]
    without = [text for text in asked.search if all(share(quote, text) < 0.3 for quote in quotes)][:1]
    rows = []
    for text, answers in [*((text, True) for text in holding), *((text, False) for text in without)]:
        scope = await read_selection(asked.question.text, text, services.reader)
        rows.append(Row(ReaderSigns.of(scope, asked.question.text), answers, answers))
    return rows


def _rates(chances: NDArray[np.float64], answerable: Sequence[bool]) -> list[list[float]]:
    """For thresholds: the share of unanswerable questions that would be answered, of answerable ones refused."""
    is_answerable = np.array(answerable)
    rows = []
    for least in np.arange(0.05, 1.0, 0.05):
        false_answers = float((chances[~is_answerable] >= least).mean())
        false_refusals = float((chances[is_answerable] < least).mean())
        rows.append([round(float(least), 2), round(false_answers, 3), round(false_refusals, 3)])
    return rows


def _logistic(signs: Sequence[ReaderSigns], truths: Sequence[bool], names: Sequence[str]) -> dict[str, Any]:
    """Weights by Newton's method, with a pull towards 0 that makes the result unique."""
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
