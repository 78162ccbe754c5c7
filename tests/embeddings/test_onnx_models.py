"""The weights are the measured ones, models share one word table, and missing files are reported."""

import ctypes
import gc
import hashlib
import subprocess
import sys
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest

from chapterverse.embeddings import local, onnx_models
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.embeddings.wordpiece import WEIGHTS
from chapterverse.errors import EmbeddingError

MOST_BYTES = 12_000_000  # a model that brings its own word table is larger


@pytest.mark.parametrize(("name", "sha256"), [("minilm.onnx", local.SHA256), ("words.npy", onnx_models.WORDS_SHA256)])
def test_weights_have_the_documented_checksums(name: str, sha256: str) -> None:
    weights = (WEIGHTS / name).read_bytes()
    assert len(weights) < MOST_BYTES
    assert hashlib.sha256(weights).hexdigest() == sha256
    decisions = Path(__file__).parents[2] / "docs" / "decisions"
    assert any(sha256 in decision.read_text("utf-8") for decision in decisions.glob("*.md"))


async def test_fingerprint_differs_from_the_int8_model() -> None:
    embedder = LocalEmbedder(threads=1)
    vector = await embedder.embed_query("The robot stops when commands stop arriving.")
    await embedder.close()
    assert np.linalg.norm(vector) == pytest.approx(1)
    # The int8 vectors of version 1 differed from float32 by about this much. tests/any_cpu compares exactly.
    assert vector[:6] == pytest.approx([0.0510, -0.0490, 0.0129, -0.0262, 0.0827, -0.0020], abs=0.01)
    assert embedder.fingerprint.model != "all-MiniLM-L6-v2-int8"
    assert embedder.fingerprint.digest != "f77cd54abf95bf6d"


@pytest.mark.parametrize(("file", "says"), [("nowhere.npy", "nowhere.npy is missing"), ("NOTICE", "NOTICE is damaged")])
def test_missing_or_damaged_word_table_is_an_error(file: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_models, "WORDS", WEIGHTS / file)
    monkeypatch.setattr(onnx_models, "_open", {})  # another test may use the model
    with pytest.raises(EmbeddingError, match=says):
        LocalEmbedder()


@pytest.mark.parametrize(
    ("sha256", "says"), [("0" * 64, r"minilm\.onnx is damaged"), (None, r"minilm\.onnx is missing")]
)
def test_missing_or_damaged_model_is_an_error(
    sha256: str | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sha256:
        monkeypatch.setattr(local, "SHA256", sha256)
    else:
        monkeypatch.setattr(local, "WEIGHTS", tmp_path)
    with pytest.raises(EmbeddingError, match=says):
        LocalEmbedder()


def test_models_share_one_memory_mapped_word_table() -> None:
    first, second = (onnx_models.Model(WEIGHTS / "minilm.onnx", local.SHA256) for _ in range(2))
    table = first._shared["words"]
    assert table is second._shared["words"]
    assert isinstance(table, np.memmap)
    assert not table.flags.writeable


def test_embedders_share_one_model_and_the_last_one_frees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each would take 46 MB."""
    models: WeakValueDictionary[tuple[Path, str], onnx_models.Model] = WeakValueDictionary()
    monkeypatch.setattr(onnx_models, "_open", models)
    embedders = [LocalEmbedder(threads=1) for _ in range(3)]
    assert len({id(embedder._model) for embedder in embedders}) == len(models) == 1
    embedders.clear()
    gc.collect()
    assert not models


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc")
def test_memory_freed_after_loading_is_returned_to_the_system() -> None:
    script = (
        "from chapterverse.trained.section_reader import shared_reader; shared_reader().load()\n"
        "import ctypes, pathlib; pages = lambda: int(pathlib.Path('/proc/self/statm').read_text().split()[1])\n"
        "kept = pages(); ctypes.CDLL(None).malloc_trim(0); print((kept - pages()) * 4096)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(shown.stdout) < 8e6
