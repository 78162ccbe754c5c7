import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.errors import IndexMissing, IndexUnavailable, IngestionError
from chapterverse.index import generations
from chapterverse.index.edge_shard import ShardReader
from tests.index.places import patient_index, scratch_directory
from tests.index.sample import ask, manifest, write_page


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch_directory() as scratch:
        yield scratch


def make(directory: Path, name: str, **files: bytes) -> Path:
    path = generations.generation_path(directory, name)
    (path / "inner").mkdir(parents=True)
    for file, data in files.items():
        (path / "inner" / file.replace("__", ".")).write_bytes(data)
    return path


def test_publish_switches_the_pointer_and_sweep_removes_unpublished_generations(directory: Path) -> None:
    assert generations.current_name(directory) is None
    with pytest.raises(IndexMissing), generations.private_copy(directory):
        pass
    for name in ("a", "b"):
        make(directory, name)
        generations.publish(directory, name)
        assert generations.current_name(directory) == name
    make(directory, "crashed")
    make(directory, "crashed.removed")
    generations.sweep_generations(directory)
    left = sorted(path.name for path in (directory / "generations").iterdir())
    assert left == ["a", "a.checksums", "b", "b.checksums"]


def test_second_writer_is_refused_while_one_holds_the_lock(directory: Path) -> None:
    with (
        generations.writer_lock(directory),
        pytest.raises(IngestionError, match=f"pid {os.getpid()}"),
        generations.writer_lock(directory),
    ):
        pass
    with generations.writer_lock(directory):
        pass


def test_private_copy_shares_files_that_readers_never_change(directory: Path) -> None:
    source = make(directory, "a", page_0__dat=b"big", chunk_0__mmap=b"big", tracker__dat=b"small")
    generations.publish(directory, "a")
    with generations.private_copy(directory) as own:
        copy = own.path
        assert (own.name, own.damage) == ("a", None)
        for file in ("page_0.dat", "chunk_0.mmap"):
            assert (copy / "inner" / file).samefile(source / "inner" / file)
        assert not (copy / "inner" / "tracker.dat").samefile(source / "inner" / "tracker.dat")
        assert (copy / "inner" / "tracker.dat").read_bytes() == b"small"
        with generations.private_copy(directory) as other:
            assert other.path != copy
        assert copy.exists()
    assert not copy.parent.exists()


def test_copy_for_a_writer_shares_no_file_and_stays_sparse(directory: Path) -> None:
    source = make(directory, "a", page_0__dat=b"")
    with (source / "inner" / "page_0.dat").open("wb") as file:
        file.seek(8 << 20)
        file.write(b"middle")
        file.truncate(64 << 20)
    generations.copy_shard(source, directory / "copy", share=False)
    original, copy = source / "inner" / "page_0.dat", directory / "copy" / "inner" / "page_0.dat"
    assert not copy.samefile(original)
    assert copy.read_bytes() == original.read_bytes()
    assert copy.stat().st_blocks * 512 < 1 << 20


def test_abandoned_copies_are_removed_and_locked_ones_kept(directory: Path) -> None:
    make(directory, "a")
    generations.publish(directory, "a")
    (directory / "readers" / "1-dead" / "shard").mkdir(parents=True)
    (directory / "readers" / "1-dead" / "lock").touch()
    with generations.private_copy(directory) as held, generations.private_copy(directory):
        assert held.path.exists()
        assert not (directory / "readers" / "1-dead").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_copy_of_another_user_is_no_obstacle(directory: Path) -> None:
    make(directory, "a")
    generations.publish(directory, "a")
    readers = directory / "readers"
    readers.mkdir()
    (readers / ".lock").touch()
    for path in (directory, readers, readers / ".lock"):
        os.chown(path, 65534, -1)
    with generations.private_copy(directory):  # by root
        os.seteuid(65534)
        try:
            with generations.private_copy(directory) as own:
                assert own.name == "a"
        finally:
            os.seteuid(0)


def test_full_disk_is_not_reported_as_damage(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(directory, "a", data=b"text")
    generations.publish(directory, "a")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(IndexUnavailable, match="cannot be copied: No space left"), generations.private_copy(directory):
        raise AssertionError("a copy was made")
    assert not list((directory / "readers").glob("*-*"))


@pytest.mark.slow
async def test_engine_does_not_change_shared_files(directory: Path) -> None:
    """Hard links are safe only because loading, searching and closing change none of these files."""
    index = patient_index(directory)
    async with index.writer() as writer:
        await write_page("p.html", [f"text {number}" for number in range(300)]).put(writer)
        await writer.publish(manifest())
    shard = generations.generation_path(directory, generations.current_name(directory) or "")
    before = state(shard)
    assert any(path.name == "chunk_0.mmap" for path in before)
    for _ in range(2):
        reader = ShardReader(shard)
        query = ask("text", limit=20, with_vectors=True)
        found = reader.search(
            {
                "text": query.text,
                "vector": query.vector.tolist(),
                "limit": 20,
                "filters": {"source_url_prefix": "https://book.example/docs/p"},
                "min_similarity": 0.0,
                "with_vectors": True,
                "dense_weight": None,
            }
        )
        assert len(found) == 20
        assert reader.pages(None)[0]
        reader._shard.close()
    assert state(shard) == before


def state(shard: Path) -> dict[Path, tuple[int, str]]:
    files = [path for pattern in generations._SHARED for path in shard.rglob(pattern)]
    return {path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files}
