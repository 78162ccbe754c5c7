from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.grounding.cutter import Cutter, Unit

ANSWER = """Here is what I found:

## Summary
ROS 2 is a set of libraries [1]. It uses DDS.[2][3] See e.g. the docs [1, 2]. Use `a.b. C[1]` now! [1-3] More text.
[4]

- **Item** one [1]
- Item two. Has two sentences [^2].
1. First thing【3】.

| a | b |
|---|---|
| c | 3.5 m [1] |

```python
x = 1  # [1]
y = "A. B"
```
Dr. Lee measured 9.81 m/s² at 3 p.m. in Fig. 2. Final sentence without stop"""


def cut(text: str, *, step: int = 0) -> list[Unit]:
    cutter = Cutter()
    size = step or max(len(text), 1)
    units = [unit for at in range(0, len(text), size) for unit in cutter.feed(text[at : at + size])]
    return units + cutter.finish()


def test_an_answer_is_cut_into_what_is_checked_one_by_one() -> None:
    assert [(unit.kind, unit.text, unit.numbers) for unit in cut(ANSWER)] == [
        ("sentence", "Here is what I found:", ()),
        ("heading", "## Summary", ()),
        ("sentence", "ROS 2 is a set of libraries.", (1,)),
        ("sentence", "It uses DDS.", (2, 3)),
        ("sentence", "See e.g. the docs.", (1, 2)),
        ("sentence", "Use `a.b. C[1]` now!", (1, 2, 3)),
        ("sentence", "More text.", (4,)),
        ("sentence", "**Item** one", (1,)),
        ("sentence", "Item two.", ()),
        ("sentence", "Has two sentences.", (2,)),
        ("sentence", "First thing.", (3,)),
        ("row", "| a | b |", ()),
        ("row", "|---|---|", ()),
        ("row", "| c | 3.5 m |", (1,)),
        ("code", '```python\nx = 1  # [1]\ny = "A. B"\n```', ()),
        ("sentence", "Dr. Lee measured 9.81 m/s² at 3 p.m. in Fig. 2.", ()),
        ("sentence", "Final sentence without stop", ()),
    ]


def test_bullets_are_kept_and_open_their_item() -> None:
    units = cut("Text.\n\n- One. Two.\n  3. Three\n")
    assert [(unit.text, unit.bullet, unit.opens) for unit in units] == [
        ("Text.", "", True),
        ("One.", "- ", True),
        ("Two.", "", False),
        ("Three", "  3. ", True),
    ]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 17, 64])
def test_the_cut_does_not_depend_on_the_pieces(step: int) -> None:
    assert cut(ANSWER, step=step) == cut(ANSWER)


_SCRAPS = st.sampled_from(
    [
        "Heron is fast", ". ", ".", "! ", "? ", "\n", "\n\n", "[1]", " [2, 3]", "【4】", "[", "]", "[1", "(x)", "`",
        "`a. Now`", "```\n", "```", "- ", "1. ", "# ", "| a | b |", "e.g. ", "3.5 m", " The boat", "Dr. ", "…", "**",
        " ", "> ", "é", "🚤", "\r\n",
    ]
)  # fmt: skip


@given(st.lists(_SCRAPS, max_size=30).map("".join), st.data())
def test_units_never_depend_on_how_the_text_was_split(text: str, data: st.DataObject) -> None:
    whole = cut(text)
    assert cut(text, step=1) == whole
    marks = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    cutter = Cutter()
    pieces = [text[one:other] for one, other in pairwise([0, *marks, len(text)])]
    assert [unit for piece in pieces for unit in cutter.feed(piece)] + cutter.finish() == whole


@given(st.text(max_size=300))
def test_no_letter_is_lost_or_invented(text: str) -> None:
    units = cut(text)
    kept = "".join(unit.text for unit in units)
    assert [char for char in kept if char.isalpha()] == [char for char in text if char.isalpha()]


def test_a_sentence_is_released_as_soon_as_its_end_is_certain() -> None:
    cutter = Cutter()
    assert cutter.feed("Heron is a boat [1]") == []
    assert cutter.feed(". ") == []
    assert [unit.text for unit in cutter.feed("It ")] == ["Heron is a boat."]


def test_a_half_arrived_marker_is_waited_for() -> None:
    cutter = Cutter()
    for piece in ("Heron is a boat. ", "[", "1", ", ", "2"):
        assert cutter.feed(piece) == []
    assert [(unit.text, unit.numbers) for unit in cutter.feed("] It floats")] == [("Heron is a boat.", (1, 2))]


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_a_sentence_without_end_is_given_up(step: int) -> None:
    units = cut("and so on " * 2000, step=step)
    assert [unit.kind for unit in units] == ["too long"] * 4 + ["sentence"]
