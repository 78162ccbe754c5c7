"""Computed vectors are kept after a failed run and deleted after a published one."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from chapterverse.embeddings import Vectors
from chapterverse.ingestion.vector_journal import VectorJournal
from chapterverse.testing import HashEmbedder


class Counting(HashEmbedder):
    """Records the texts that it embeds."""

    def __init__(self, dimension: int = 32) -> None:
        super().__init__(dimension)
        self.asked: list[str] = []

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return await super().embed_passages(texts)


async def test_each_text_is_embedded_once_also_after_a_crash(tmp_path: Path) -> None:
    embedder = Counting()
    with VectorJournal(tmp_path / "journal", embedder) as journal:
        first, computed = await journal.embed(["a b", "c d", "a b"])
        assert computed == 2
    with VectorJournal(tmp_path / "journal", embedder) as journal:  # as after a crash
        again, computed = await journal.embed(["c d", "e f", "a b"])
        assert computed == 1
    assert embedder.asked == ["a b", "c d", "e f"]
    assert np.array_equal(first[0], again[2])
    assert np.array_equal(first[1], again[0])


async def test_another_model_has_its_own_vectors(tmp_path: Path) -> None:
    with VectorJournal(tmp_path / "journal", Counting(32)) as journal:
        await journal.embed(["a"])
    with VectorJournal(tmp_path / "journal", Counting(16)) as journal:
        vectors, computed = await journal.embed(["a"])
    assert (vectors.shape, computed) == ((1, 16), 1)


async def test_empty_list_gives_no_vectors(tmp_path: Path) -> None:
    with VectorJournal(tmp_path / "journal", Counting(32)) as journal:
        vectors, computed = await journal.embed([])
    assert (vectors.shape, computed) == ((0, 32), 0)


async def test_forget_deletes_the_journal(tmp_path: Path) -> None:
    embedder = Counting()
    with VectorJournal(tmp_path / "journal", embedder) as journal:
        await journal.embed(["a"])
        journal.forget()
    assert not (tmp_path / "journal").exists()


async def test_another_run_keeps_the_vectors_of_an_interrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Counting()
    with VectorJournal(tmp_path / "journal", embedder) as journal:
        await journal.embed(["big", "shared"])
    with VectorJournal(tmp_path / "journal", embedder) as journal:
        await journal.embed(["small", "shared"])
        journal.forget()
    with VectorJournal(tmp_path / "journal", embedder) as journal:
        assert (await journal.embed(["big"]))[1] == 0
    monkeypatch.setattr("chapterverse.ingestion.vector_journal._KEPT_FOR", -1.0)
    with VectorJournal(tmp_path / "journal", embedder) as journal:
        assert (await journal.embed(["big"]))[1] == 1, "it was too old"


async def test_vectors_of_an_earlier_version_are_kept(tmp_path: Path) -> None:
    with VectorJournal(tmp_path / "journal", Counting()) as journal:
        await journal.embed(["a"])
    with closing(sqlite3.connect(tmp_path / "journal")) as database:
        database.execute("ALTER TABLE vectors DROP COLUMN at")
    for _ in range(2):
        with VectorJournal(tmp_path / "journal", Counting()) as journal:
            assert (await journal.embed(["a"]))[1] == 0


@pytest.mark.parametrize("damage", ["head", "middle"])
async def test_damaged_file_is_made_again(tmp_path: Path, damage: str) -> None:
    path, texts = tmp_path / "journal", [f"text {number}" for number in range(400)]
    with VectorJournal(path, Counting()) as journal:
        await journal.embed(texts)
    data = bytearray(path.read_bytes())
    start = 0 if damage == "head" else len(data) // 2
    data[start : start + 8192] = b"garbage." * 1024
    path.write_bytes(data)
    with VectorJournal(path, Counting()) as journal:
        assert (await journal.embed(texts))[1] == len(texts)
