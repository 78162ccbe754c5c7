"""Units: what can be cited, with exact offsets and with the head that a reader needs."""

import re

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


def _told(text: str) -> list[tuple[str, str, str]]:
    return [
        (unit.kind, text[unit.start : unit.end], text[unit.head_start : unit.head_end] if unit.has_head else "")
        for unit in cut_units(text, blocks_of_text(text))
    ]


def test_each_kind_of_unit_with_its_head() -> None:
    lead = "They have the following parts:"
    assert _told(TEXT) == [
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


def test_a_row_is_told_with_the_names_of_its_columns() -> None:
    row = next(unit for unit in cut_units(TEXT, blocks_of_text(TEXT)) if unit.kind == "row")
    assert unit_text(TEXT, row) == "name: `speed` | default: 2.0"


def test_a_field_is_one_unit() -> None:
    text = "`speed`\nType: double\nDefault: 2.0\nHow fast it goes. In m/s."
    assert cut_units(text, [Block("field", 0, len(text), 0)]) == (Unit("field", 0, len(text)),)


def test_a_lead_in_ends_with_its_section() -> None:
    text = "See:\n\n# Other\n\n```\nx\n```"
    assert _told(text) == [("sentence", "See:", ""), ("code", "```\nx\n```", "")]


def test_a_long_item_is_cut_into_sentences_that_know_where_they_belong() -> None:
    long = "- First it says this. " + "Then it goes on and on. " * 40
    told = _told("Parts:\n\n" + long.rstrip())
    assert told[1] == ("item", "- First it says this.", "Parts:")
    assert told[2] == ("sentence", "Then it goes on and on.", "- First it says this.")


def test_very_long_code_is_cut_at_lines() -> None:
    code = "```\n" + "x = 1\n" * 2000 + "```"
    pieces = [unit for unit in cut_units(code, blocks_of_text(code)) if unit.kind == "code"]
    assert all(unit.end - unit.start <= MAX_UNIT_CHARS for unit in pieces)
    assert "".join(code[unit.start : unit.end] + "\n" for unit in pieces) == code + "\n"


@given(st.text(alphabet="ab. \n-|`#:1)\t", max_size=300))
def test_units_of_any_text_are_in_order_and_lose_no_word(text: str) -> None:
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


def test_a_list_that_goes_on_after_code_keeps_its_lead() -> None:
    text = "Do this:\n\n1. Build:\n\n```\nmake\n```\n\nWait.\n\n2. Run\n\nThen:\n\n- other"
    kinds = [("paragraph", 0), ("list", 0), ("code", 1), ("paragraph", 1), ("list", 0), ("paragraph", 0), ("list", 0)]
    places = [(found.start(), found.end()) for found in re.finditer(r"```[^`]*```|[^\n]+", text)]
    blocks = [
        Block(kind, start, end, 0, inside=inside)  # type: ignore[arg-type]
        for (kind, inside), (start, end) in zip(kinds, places, strict=True)
    ]
    told = {text[unit.start : unit.end]: text[unit.head_start : unit.head_end] for unit in cut_units(text, blocks)}
    assert told["2. Run"] == "Do this:"
    assert told["```\nmake\n```"] == "1. Build:"
    assert told["- other"] == "Then:"
