"""Loads the bundled ONNX models and verifies their checksums.

Models without their own word table use `weights/words.npy`. It is memory-mapped, so that processes share it.
"""

import ctypes
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from chapterverse.embeddings.wordpiece import WEIGHTS

WORDS: Final = WEIGHTS / "words.npy"  # a row for each line of vocabulary.txt; scale and zero point are in the models
WORDS_SHA256: Final = "c1d897bb1633dacc8601c72ce0cd82c505d639123f4a1014a2ba92d5b3882de2"


class Unusable(Exception):
    """A file of the package is missing or damaged."""


class Model:
    """A loaded ONNX file. It runs on the caller's thread."""

    def __init__(self, path: Path, sha256: str) -> None:
        import onnxruntime as ort  # 11 MB that a server with remote engines may never need

        _check(path, sha256)
        _share_memory()
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors only
        options.add_session_config_entry("session.use_env_allocators", "1")
        self._session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        _give_back_memory()
        named = {tensor.name for tensor in self._session.get_inputs()}
        self._shared = {"words": _word_table(WORDS, WORDS_SHA256)} if "words" in named else {}

    def run(self, inputs: Mapping[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """The outputs of the model. Raises onnxruntime's errors, which have no common base class."""
        outputs: list[Any] = self._session.run(None, {**inputs, **self._shared})
        return outputs


def shared_model(path: Path, sha256: str) -> Model:
    """The model, shared by all users in this process. Its memory is freed when the last user drops it."""
    with _opening:
        if (model := _open.get((path, sha256))) is None:
            model = _open[path, sha256] = Model(path, sha256)
        return model


_opening: Final = Lock()
_open: Final = WeakValueDictionary[tuple[Path, str], Model]()


@cache
def _share_memory() -> None:
    """Let all models share one memory arena: they seldom run at the same time, and each would keep its own."""
    import onnxruntime as ort

    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(memory, None)


def _give_back_memory() -> None:
    """Return freed memory to the system after loading; glibc would keep it."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


@cache
def _word_table(path: Path, sha256: str) -> NDArray[np.uint8]:
    _check(path, sha256)
    table: NDArray[np.uint8] = np.load(path, mmap_mode="r")
    return table


def _check(path: Path, sha256: str) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as failure:
        raise Unusable(f"{path.name} is missing; reinstall chapterverse.") from failure
    if found != sha256:
        raise Unusable(f"{path.name} is damaged; reinstall chapterverse.")
