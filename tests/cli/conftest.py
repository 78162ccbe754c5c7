"""Homes for tests with the embedded Postgres."""

from pathlib import Path

import pytest


@pytest.fixture
def open_home(example_home: Path, postgres_root: Path) -> Path:
    """A home with the example book and no Postgres yet, in a folder that the Postgres user can enter."""
    home = postgres_root / "home"
    home.mkdir()
    (home / "index").symlink_to(example_home / "index")
    return home
