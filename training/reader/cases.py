"""Whole questions for tests: a text cut into sentences, and which sets of them hold the answer.

Owns the shape of a test question and how a model's token scores become scores of sentences. The product's adapter
scores in the same way.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from training.pack import read
from training.prose import detokenised, sentence_spans
from training.reader.data import WORDS, dialogue_question, doc2dial_documents, holds, windows
from training.rows import Row, fold, spans_of


@dataclass(frozen=True, slots=True)
class Case:
    """`gold`: sets of sentences, any of which is a right answer; none: the text does not answer."""

    name: str
    group: str
    question: str
    sentences: tuple[str, ...]
    gold: tuple[tuple[int, ...], ...]
    cause: str = ""
    id: str = ""

    @property
    def part(self) -> int:
        return fold(Row(self.name, self.group, "", "", 0))


def squad_cases(data: Path) -> Iterator[Case]:
    with gzip.open(data / "squad2/dev_a.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    for article in articles:
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            spans = sentence_spans(text)
            parts = tuple(" ".join(text[a:b].split()) for a, b in spans)
            for qa in paragraph["qas"]:
                gold = {
                    tuple(i for i, (a, b) in enumerate(spans) if a < at + len(x["text"]) and b > at)
                    for x in qa["answers"] for at in [x["answer_start"]]
                }  # fmt: skip
                cause = qa.get("unanswerable_cause", "?") if qa["is_impossible"] else ""
                yield Case(
                    "squad", article["title"], qa["question"].strip(), parts, tuple(sorted(gold)), cause, qa["id"]
                )


def clapnq_cases(data: Path) -> Iterator[Case]:
    for record in read(data / "clapnq/dev_a.jsonl.gz"):
        parts = tuple(detokenised(s) for s in record["passages"][0]["sentences"])
        chosen = {detokenised(s) for a in record["answers"] for s in a.get("selected_sentences", [])}
        gold = tuple((i,) for i, part in enumerate(parts) if part in chosen) if record["answerable"] else ()
        yield Case("clapnq", record["id"], record["question"], parts, gold, "" if gold else "I", record["id"])


def doc2dial_cases(data: Path) -> Iterator[Case]:
    """The whole document, as when a reader asks about a page."""
    documents = doc2dial_documents(data)
    for turn in read(data / "doc2dial/turns_a.jsonl.gz"):
        parts = tuple(documents[turn["doc_id"]])
        said = " ".join(" ".join(g["text"] for g in turn["gold_spans"]).split())
        gold = tuple((i,) for i, part in enumerate(parts) if holds(part, said))
        if gold:
            yield Case("doc2dial", turn["doc_id"], dialogue_question(turn), parts, gold, "", turn["id"])


def cases(data: Path) -> list[Case]:
    return [*squad_cases(data), *clapnq_cases(data), *doc2dial_cases(data)]


def case_windows(case: Case) -> list[tuple[int, int]]:
    return windows(case.sentences, WORDS)


def window_row(case: Case, run: tuple[int, int]) -> Row:
    return Row(case.name, case.group, case.question, " ".join(case.sentences[slice(*run)]), 0)


def sentence_features(marks: np.ndarray, offsets: np.ndarray, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """For each sentence of a window: mean evidence logit, share of the answer's start, best span over "no answer".

    `marks` holds the line of "no answer" and then one line per token; `offsets` are the tokens' characters."""
    start = marks[:, 0] - marks[:, 0].max()
    share = np.exp(start) / np.exp(start).sum()
    out = np.full((len(spans), 3), -20.0, np.float32)
    none = marks[0, 0] + marks[0, 1]
    for line, (low, high) in enumerate(spans):
        inside = np.flatnonzero((offsets[:, 0] >= low) & (offsets[:, 1] <= high)) + 1
        if len(inside):
            starts, ends = marks[inside, 0], marks[inside, 1]
            reach = np.maximum.accumulate(ends[::-1])[::-1]  # the best end at or after each start
            out[line] = marks[inside, 2].mean(), share[inside].sum(), (starts + reach).max() - none
    return out


def spans_in(case: Case, run: tuple[int, int]) -> list[tuple[int, int]]:
    return spans_of(case.sentences[slice(*run)])
