import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.grounding import Passage, Rules, lines_of

_CHARS = st.text(st.sampled_from("ab \n\r🚤👩‍👩‍👧e\u0301\u2028ß中"), max_size=60)


@given(_CHARS, st.data())
def test_lines_are_those_that_an_editor_shows(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = lines_of(text, start, end)
    plain = text.replace("\r\n", "\n\x00").replace("\r", "\n")  # same length, one sign for each end of a line

    def line(at: int) -> int:
        return 1 + plain[:at].count("\n") - (plain[at : at + 1] == "\x00")

    assert (first, last) == (line(start), line(max(start, end - 1)))
    assert 1 <= first <= last


def test_a_stretch_over_lines() -> None:
    text = "One 🚤.\nTwo e\u0301.\r\nThree."
    start = text.index("Two")
    assert lines_of(text, 0, 3) == (1, 1)
    assert lines_of(text, start, len(text)) == (2, 3)
    assert lines_of("", 0, 0) == (1, 1)


@pytest.mark.parametrize("span", [(-1, 0), (2, 1), (0, 9)])
def test_a_stretch_outside_the_text_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="does not lie"):
        lines_of("abc", *span)


@given(_CHARS, _CHARS)
def test_evidence_in_a_selection_has_exact_offsets_for_any_unicode(before: str, after: str) -> None:
    sentence = "The 🚤 e\u0301tude carries 12 kg of 中文 cargo."
    selection = f"{before}\n\n{sentence}\n\n{after}"
    (evidence,) = Rules().judge(sentence, [Passage(1, selection)]).evidence
    assert selection[evidence.start : evidence.end] == sentence
    first, last = lines_of(selection, evidence.start, evidence.end)
    assert first == last
