import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.grounding import markers


@pytest.mark.parametrize(
    ("text", "bare", "numbers"),
    [
        ("Heron floats [1].", "Heron floats.", (1,)),
        ("Heron floats. [1]", "Heron floats.", (1,)),
        ("Heron floats.[1][2]", "Heron floats.", (1, 2)),
        ("Heron floats [1, 2; 5].", "Heron floats.", (1, 2, 5)),
        ("Heron floats [2-4].", "Heron floats.", (2, 3, 4)),
        ("Heron floats [2–4].", "Heron floats.", (2, 3, 4)),
        ("Heron floats [^3].", "Heron floats.", (3,)),
        ("Heron floats 【1】.", "Heron floats.", (1,)),
        ("Heron floats 【1†source】.", "Heron floats.", (1,)),
        ("Heron floats [passage 2].", "Heron floats.", (2,)),
        ("Heron floats [1] [1].", "Heron floats.", (1,)),
        ("Heron [1] floats [2].", "Heron floats.", (1, 2)),
        ("The call `x[1]` fails.", "The call `x[1]` fails.", ()),
        ("The call scan.ranges[0] fails.", "The call scan.ranges[0] fails.", ()),
        ("See [1](https://a.example).", "See [1](https://a.example).", ()),
        ("A list [a, b] and (1).", "A list [a, b] and (1).", ()),
    ],
)
def test_markers_are_read_in_every_form(text: str, bare: str, numbers: tuple[int, ...]) -> None:
    assert markers.remove(text) == (bare, numbers)


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        ("Heron floats.", "Heron floats [1][2]."),
        ("Heron floats!", "Heron floats [1][2]!"),
        ("“Heron floats.”", "“Heron floats [1][2].”"),
        ("Heron floats", "Heron floats [1][2]"),
        ("苍鹭漂浮。", "苍鹭漂浮 [1][2]。"),
    ],
)
def test_markers_are_written_before_the_full_stop(text: str, placed: str) -> None:
    assert markers.place(text, (1, 2)) == placed


@given(st.lists(st.integers(1, 99), min_size=1, max_size=5, unique=True))
def test_what_is_written_is_read_again(numbers: list[int]) -> None:
    assert markers.remove(markers.place("Heron floats.", numbers)) == ("Heron floats.", tuple(numbers))


@given(st.text(max_size=120))
def test_a_mask_keeps_every_place(text: str) -> None:
    assert len(markers.mask(text)) == len(text)


def test_a_wide_range_is_a_slip() -> None:
    assert markers.remove("Heron floats [1-9999].")[1] == (1, 9999)
