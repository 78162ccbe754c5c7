"""A MiniLM over pairs of texts as int8 ONNX on the CPU: a score for the pair, and from the reader three for each token.

Owns the threads and the way from tokens back to characters. Pairs run one at a time on one thread each, several
threads side by side: measured as fast as batches, and onnxruntime lets go of the interpreter lock while it runs. Never
cuts a text in windows: what goes beyond 256 tokens of both texts is not read.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from chapterverse.embeddings.shipped import Model, Unusable
from chapterverse.embeddings.wordpiece import WordPiece, tokenizer
from chapterverse.errors import AgentUnavailable

Name = Literal["reader", "verifier"]
Pair = tuple[str, str]

WEIGHTS: Final = Path(__file__).parent / "weights"
SHA256: Final[dict[Name, str]] = {
    "reader": "f7cc791d03029feafbef818efd857088cc88a31f20899235615e114a8a9d283c",
    "verifier": "2f463be629dbb21a6f8b2d14f7f9fb7a552ccc86cc4b11bb08926e4489489e36",
}
_NO_MARKS: Final = np.zeros((1, 1, 3), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What a model says of a pair. Arrays have one line for each token of the second text that was read; the verifier
    marks none."""

    logit: float  # of the pair; the scale is the model's own
    starts: NDArray[np.float32]  # logits that the answer starts with this token
    ends: NDArray[np.float32]  # that it ends with it
    evidence: NDArray[np.float32]  # that it belongs to the evidence
    spans: NDArray[np.int64]  # first and end character in the second text
    nothing: float  # start and end logit of "there is no answer", summed


class CrossEncoder:
    """Scores pairs. The weights are read when they are first needed."""

    def __init__(self, name: Name, threads: int | None = None) -> None:
        self._name: Name = name
        # Half of the cores: with all of them ten questions at once were answered more slowly, in more memory.
        self._pool = ThreadPoolExecutor(threads or max(1, (os.cpu_count() or 1) // 2), name)
        self._loading = Lock()
        self._loaded: tuple[Model, WordPiece] | None = None

    def score(self, pairs: Sequence[Pair]) -> list[Scored]:
        """The scores, in the order of the pairs. Blocks: call it in a thread."""
        self.load()
        longest_first = sorted(range(len(pairs)), key=lambda at: -len(pairs[at][1]))
        running = {at: self._pool.submit(self._score, pairs[at]) for at in longest_first}
        return [running[at].result() for at in range(len(pairs))]

    def load(self) -> None:
        """Read the weights, unless they are read already. Blocks."""
        with self._loading:
            if self._loaded is None:
                self._loaded = _model(self._name), tokenizer()

    def close(self) -> None:
        """Stop the threads; pairs not begun are dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _score(self, pair: Pair) -> Scored:
        assert self._loaded is not None
        model, words = self._loaded
        tokens = words.encode_pair(*pair)
        ids = np.array([tokens.ids], np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([tokens.types], np.int64),
        }
        try:
            logit, marks = [*model.run(inputs), _NO_MARKS][:2]
        except Exception as failure:  # onnxruntime's errors have no base of their own
            raise AgentUnavailable(f"The trained {self._name} failed.", retryable=False) from failure
        lines = marks[0, tokens.second]
        return Scored(
            logit=float(logit[0]),
            starts=lines[:, 0],
            ends=lines[:, 1],
            evidence=lines[:, 2],
            spans=np.array(tokens.spans[: len(lines)], np.int64).reshape(-1, 2),
            nothing=float(marks[0, 0, 0] + marks[0, 0, 1]),
        )


def _model(name: Name) -> Model:
    try:
        return Model(WEIGHTS / f"{name}.onnx", SHA256[name])
    except Unusable as failure:
        raise AgentUnavailable(str(failure), retryable=False) from failure
