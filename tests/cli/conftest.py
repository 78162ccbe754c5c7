"""Homes for processes that hold a conversation."""

from pathlib import Path

import pytest


@pytest.fixture
def open_home(example_home: Path, postgres_root: Path) -> Path:
    """A home with the example book and no Postgres yet, in a place that the account of Postgres can enter."""
    home = postgres_root / "home"
    home.mkdir()
    (home / "index").symlink_to(example_home / "index")
    return home
