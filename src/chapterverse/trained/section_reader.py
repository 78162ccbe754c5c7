"""Runs the section reader as ONNX on the CPU: a small cross-encoder that scores whether a passage and its units answer.

Each passage runs on one thread, several in parallel: this is as fast as batches, and onnxruntime releases the
interpreter lock while it runs. A passage that is longer than the model's window is read in several parts.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from chapterverse.embeddings.onnx_models import Model, Unusable, shared_model
from chapterverse.embeddings.wordpiece import WordPiece, tokenizer
from chapterverse.errors import AgentUnavailable

# The bundled file. `training/section_reader` makes it; weights/README.md is its model card.
WEIGHTS: Final = Path(__file__).parent / "weights" / "section_reader.onnx"
SHA256: Final = "00547d2e83dcc336fa0a67d83344afb309ca70174a2534e14f9b563cf8763fe4"

WINDOW: Final = 384  # tokens of question and passage together
QUESTION: Final = 96  # at most this many of them for the question and the conversation before it
UNREAD: Final = -9.0  # logit of a unit if none of its tokens was read

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with the positions of its units, and the text before it: headings and lead-in."""

    text: str
    units: tuple[Span, ...]  # in the text
    front: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """The model's scores for a passage, as logits: above 0 means yes."""

    answers: float  # that the passage answers the question
    units: tuple[float, ...]  # that a unit belongs to the answer


class SectionReader:
    """Reads passages for questions. The weights are loaded when they are first needed."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1)), "section-reader")
        self._loading = Lock()
        self._loaded: tuple[Model, WordPiece] | None = None

    def read(self, pairs: Sequence[tuple[str, Passage]]) -> list[Read]:
        """Return the scores in the order of the pairs. Blocks: call it in a thread."""
        wanted = [[(question, part) for part in self._parts(whole)] for question, whole in pairs]
        longest_first = sorted((one for parts in wanted for one in parts), key=lambda one: -len(one[1].text))
        running = {one: self._pool.submit(self._read, *one) for one in dict.fromkeys(longest_first)}
        found = [[running[one].result() for one in parts] for parts in wanted]
        # The best part decides for a passage that was read in parts.
        return [Read(max(one.answers for one in reads), sum((one.units for one in reads), ())) for reads in found]

    def load(self) -> tuple[Model, WordPiece]:
        """Return the model and its tokenizer, loaded once. Blocks."""
        with self._loading:
            if self._loaded is None:
                try:
                    self._loaded = shared_model(WEIGHTS, SHA256), tokenizer()
                except Unusable as failure:
                    raise AgentUnavailable(str(failure), retryable=False) from failure
            return self._loaded

    def _parts(self, whole: Passage) -> Iterator[Passage]:
        """Yield the passage or, if it is too long, runs of its units that fit."""
        count = self.load()[1].count
        room = WINDOW - QUESTION - count(whole.front)
        if count(whole.text) <= room or len(whole.units) < 2:
            yield whole
            return
        run: list[Span] = []
        tokens = 0
        for start, end in whole.units:
            size = count(whole.text[start:end])
            if run and tokens + size > room:
                yield _run(whole, run)
                run, tokens = [], 0
            run.append((start, end))
            tokens += size
        yield _run(whole, run)

    def _read(self, question: str, passage: Passage) -> Read:
        model, words = self.load()
        tokens = words.encode_pair(question, passage.front + passage.text, QUESTION, WINDOW)
        ids = np.array([tokens.ids], np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([tokens.types], np.int64),
        }
        try:
            answers, marks = model.run(inputs)
        except Exception as failure:  # onnxruntime's errors have no common base class
            raise AgentUnavailable("The section reader failed.", retryable=False) from failure
        starts = np.array([start for start, _ in tokens.spans], np.int64) - len(passage.front)
        scores = marks[0, tokens.second]
        inside = (scores[(starts >= start) & (starts < end)] for start, end in passage.units)
        units = tuple(float(part.mean()) if part.size else UNREAD for part in inside)
        return Read(float(answers[0]), units)


@cache
def shared_reader() -> SectionReader:
    """Return the reader of this process: one set of weights and threads for all questions."""
    return SectionReader()


def _run(whole: Passage, units: Sequence[Span]) -> Passage:
    start, end = units[0][0], units[-1][1]
    moved = tuple((left - start, right - start) for left, right in units)
    return Passage(whole.text[start:end], moved, whole.front)
