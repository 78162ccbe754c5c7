"""Files are replaced only by complete ones."""

import resource
import signal
from pathlib import Path

import pytest

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.files import save_text


def test_failure_keeps_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "set.baseline.json"
    save_text("before", path)
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # as a full disk
    try:
        with pytest.raises(ValidationFailed, match="cannot be written: File too large"):
            save_text("now" * 10_000, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text("utf-8") == "before"
    assert save_text("now", path).read_text("utf-8") == "now"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    save_text("x", Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
