"""Files are written in place."""

import os
from pathlib import Path

import pytest

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.files import save_text


def test_file_is_written_in_place(tmp_path: Path) -> None:
    path, link = tmp_path / "summary.md", tmp_path / "link"
    path.touch(mode=0o600)
    link.symlink_to(path)
    with path.open("a", encoding="utf-8") as output:  # as `--summary /dev/stdout >> summary.md`
        save_text("summary\n", link)
        output.write("after\n")
    assert path.read_text("utf-8") == "summary\nafter\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_pipe_and_device_are_written() -> None:
    reading, writing = os.pipe()
    save_text("x", Path(f"/dev/fd/{writing}"))
    assert os.read(reading, 10) == b"x"
    os.close(reading)
    os.close(writing)
    save_text("x", Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


def test_file_that_cannot_be_written_raises_an_error_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match=r"^--out .*: cannot be written: Is a directory"):
        save_text("x", tmp_path, "--out")
