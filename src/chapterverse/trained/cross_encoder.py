"""A six-layer MiniLM over pairs of texts as int8 ONNX on the CPU: one score for the pair, three for each token.

Owns the ONNX session, its threads and the way from tokens back to characters. Pairs run one at a time on one thread
each, several threads side by side: measured as fast as batches, and onnxruntime lets go of the interpreter lock while
it runs. Never cuts a text in windows: what goes beyond 256 tokens of both texts is not read.
"""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer

from chapterverse.embeddings import wordpiece
from chapterverse.errors import AgentUnavailable

Name = Literal["reader", "verifier"]
Pair = tuple[str, str]

WEIGHTS: Final = Path(__file__).parent / "weights"
SHA256: Final[dict[Name, str]] = {
    "reader": "581668a6a25aa4b0cbd5bba625c38b500a21265272686164c0bac3ec3e32374e",
    "verifier": "060635558623db91356e6afe179a8e415561700388542a3801c33ca50bf9d2ff",
}


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What a model says of a pair. Arrays have one line for each token of the second text that was read."""

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
        self._pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, name)
        self._loading = Lock()
        self._loaded: tuple[ort.InferenceSession, Tokenizer] | None = None

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
                self._loaded = _session(self._name), _tokenizer()

    def close(self) -> None:
        """Stop the threads; pairs not begun are dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _score(self, pair: Pair) -> Scored:
        assert self._loaded is not None
        session, tokenizer = self._loaded
        # Half a surrogate pair is no text; the character that takes its place is as long.
        first, second = (text.encode("utf-8", "replace").decode() for text in pair)
        tokens = tokenizer.encode(first, second)
        inputs = {
            "input_ids": np.array([tokens.ids], np.int64),
            "attention_mask": np.array([tokens.attention_mask], np.int64),
            "token_type_ids": np.array([tokens.type_ids], np.int64),
        }
        try:
            logit, marks = session.run(None, inputs)
        except Exception as failure:  # onnxruntime's errors have no base of their own
            raise AgentUnavailable(f"The trained {self._name} failed.", retryable=False) from failure
        of_second = [at for at, sequence in enumerate(tokens.sequence_ids) if sequence == 1]
        lines = marks[0, of_second]
        return Scored(
            logit=float(logit[0]),
            starts=lines[:, 0],
            ends=lines[:, 1],
            evidence=lines[:, 2],
            spans=np.array([tokens.offsets[at] for at in of_second], np.int64).reshape(-1, 2),
            nothing=float(marks[0, 0, 0] + marks[0, 0, 1]),
        )


def _session(name: Name) -> ort.InferenceSession:
    path = WEIGHTS / f"{name}.onnx"
    try:
        weights = path.read_bytes()
    except OSError as failure:
        raise AgentUnavailable(f"{path.name} is missing; reinstall chapterverse.", retryable=False) from failure
    if hashlib.sha256(weights).hexdigest() != SHA256[name]:
        raise AgentUnavailable(f"{path.name} is damaged; reinstall chapterverse.", retryable=False)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    return ort.InferenceSession(weights, options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Tokenizer:
    """The embedder's, for pairs: of two texts that are too long together, the longer is cut."""
    pairs = Tokenizer.from_file(str(wordpiece.WEIGHTS / "tokenizer.json"))
    pairs.enable_truncation(wordpiece.WINDOW, strategy="longest_first")
    return pairs
