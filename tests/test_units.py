"""Units that can be cited: exact offsets, and the heading line that gives context."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from chapterverse.book import Block, Unit
from chapterverse.units import MAX_UNIT_CHARS, blocks_of_text, cut_units, unit_text

TEXT = """# Robots

Robots move. They have the following parts:

- a base
  - wheels
- an arm that reaches far
  and wide

Start it with this command:

```bash
robot start
```

| name | default |
|---|---|
| `speed` | 2.0 |
| `mass` | 6 kg |

## Next

Done.
"""


def _kind_text_and_head(text: str) -> list[tuple[str, str, str]]:
    return [
        (unit.kind, text[unit.start : unit.end], text[unit.head_start : unit.head_end] if unit.has_head else "")
        for unit in cut_units(text, blocks_of_text(text))
    ]


def test_text_is_cut_into_units_with_their_heads() -> None:
    lead = "They have the following parts:"
    assert _kind_text_and_head(TEXT) == [
        ("sentence", "Robots move.", ""),
        ("sentence", lead, ""),
        ("item", "- a base", lead),
        ("item", "- wheels", "- a base"),
        ("item", "- an arm that reaches far\n  and wide", lead),
        ("sentence", "Start it with this command:", ""),
        ("code", "```bash\nrobot start\n```", "Start it with this command:"),
        ("row", "| `speed` | 2.0 |", "| name | default |"),
        ("row", "| `mass` | 6 kg |", "| name | default |"),
        ("sentence", "Done.", ""),
    ]


def test_text_of_a_row_has_the_column_names() -> None:
    row = next(unit for unit in cut_units(TEXT, blocks_of_text(TEXT)) if unit.kind == "row")
    assert unit_text(TEXT, row) == "name: `speed` | default: 2.0"


def test_a_field_is_one_unit() -> None:
    text = "`speed`\nType: double\nDefault: 2.0\nHow fast it goes. In m/s."
    assert cut_units(text, [Block("field", 0, len(text), 0)]) == (Unit("field", 0, len(text)),)


def test_lead_in_does_not_apply_to_the_next_section() -> None:
    text = "See:\n\n# Other\n\n```\nx\n```"
    assert _kind_text_and_head(text) == [("sentence", "See:", ""), ("code", "```\nx\n```", "")]


def test_long_item_is_cut_into_sentences_with_the_item_as_head() -> None:
    long = "- First it says this. " + "Then it goes on and on. " * 40
    result = _kind_text_and_head("Parts:\n\n" + long.rstrip())
    assert result[1] == ("item", "- First it says this.", "Parts:")
    assert result[2] == ("sentence", "Then it goes on and on.", "- First it says this.")


def test_very_long_code_is_cut_at_lines() -> None:
    code = "```\n" + "x = 1\n" * 2000 + "```"
    pieces = [unit for unit in cut_units(code, blocks_of_text(code)) if unit.kind == "code"]
    assert all(unit.end - unit.start <= MAX_UNIT_CHARS for unit in pieces)
    assert "".join(code[unit.start : unit.end] + "\n" for unit in pieces) == code + "\n"


@given(st.text(alphabet="ab. \n-|`#:1)\t", max_size=300))
def test_units_are_ordered_and_complete(text: str) -> None:
    units = cut_units(text, blocks_of_text(text))
    covered = [False] * len(text)
    end = 0
    for unit in units:
        assert end <= unit.start < unit.end <= len(text)
        assert unit.head_start <= unit.start
        end = unit.end
    for unit in units:
        covered[unit.start : unit.end] = [True] * (unit.end - unit.start)
    for block in blocks_of_text(text):
        if block.kind not in ("heading", "table"):
            assert all(covered[at] or text[at].isspace() for at in range(block.start, block.end))


def test_list_continued_after_code_keeps_its_lead_in() -> None:
    text = "Do this:\n\n1. Build:\n\n```\nmake\n```\n\nWait.\n\n2. Run\n\nThen:\n\n- other"
    kinds = [("paragraph", 0), ("list", 0), ("code", 1), ("paragraph", 1), ("list", 0), ("paragraph", 0), ("list", 0)]
    places = [(found.start(), found.end()) for found in re.finditer(r"```[^`]*```|[^\n]+", text)]
    blocks = [
        Block(kind, start, end, 0, inside=inside)  # type: ignore[arg-type]
        for (kind, inside), (start, end) in zip(kinds, places, strict=True)
    ]
    result = {text[unit.start : unit.end]: text[unit.head_start : unit.head_end] for unit in cut_units(text, blocks)}
    assert result["2. Run"] == "Do this:"
    assert result["```\nmake\n```"] == "1. Build:"
    assert result["- other"] == "Then:"


def test_blanks_at_the_end_of_an_item_cost_linear_time() -> None:
    blanks = " " * 200_000
    text = f"- one{blanks}\n{blanks}\n- two"
    started = time.process_time()
    assert [text[unit.start : unit.end] for unit in cut_units(text, blocks_of_text(text))] == ["- one", "- two"]
    assert time.process_time() - started < 5.0  # quadratic time would be minutes


def test_code_between_fences_on_one_line_is_no_code_block() -> None:
    assert [block.kind for block in blocks_of_text("```ls```\n\nThe port is 80.")] == ["paragraph", "paragraph"]
