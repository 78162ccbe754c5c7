"""The tests that docs/SEEDS.md names for each requirement exist, and it names all tests of the seeds."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "SEEDS.md").read_text("utf-8")


def test_every_row_names_an_existing_test() -> None:
    rows = [row for row in TABLE.splitlines() if row.startswith("| ") and not row.startswith("| requirement")]
    assert len(rows) > 80
    for row in rows:
        path, _, name = row.rstrip(" |").rpartition("`")[0].rpartition("`")[2].partition("::")
        source = (ROOT / path).read_text("utf-8")
        assert not name or re.search(rf"def {name}\(", source), row


def test_every_test_of_a_seed_is_in_the_table() -> None:
    for path in sorted((ROOT / "tests" / "seeds").glob("test_seed_*.py")):
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE):
            assert f"tests/seeds/{path.name}::{name}`" in TABLE, f"{path.name}::{name}"
