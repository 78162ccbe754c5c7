"""Sources and markers: quotes are the exact text of the units, each source is listed once, Markdown stays valid."""

import pytest

from chapterverse.evidence.citations import Proven, Renderer, lines_of, marked, markers_of, without_markers
from chapterverse.evidence.passages import Evidence
from chapterverse.evidence.statement import Statement
from chapterverse.models import SelectedTextCitation
from tests.chunks import chunk
from tests.evidence.proving import evidence_of

TEXT = "One is here. Two is there. Three is far. Four is near."


def renderer_of(evidence: Evidence) -> Renderer:
    return Renderer(evidence.passages)


def test_adjacent_units_are_one_source() -> None:
    evidence = evidence_of(TEXT)
    one, two, _, four = evidence.all_units()
    shown = renderer_of(evidence).write(Proven(Statement("So it is."), "supported", (four, two, one)))
    assert shown.content == "So it is [1][2]."
    assert [source.quote for source in shown.sources] == ["One is here. Two is there.", "Four is near."]
    assert [(light.start, light.end) for light in shown.sources[0].highlights] == [(0, 12), (13, 26)]


def test_source_is_sent_once_and_a_wider_quote_is_a_new_source() -> None:
    evidence = evidence_of(TEXT)
    one, two, three, _ = evidence.all_units()
    renderer = renderer_of(evidence)
    first = renderer.write(Proven(Statement("A."), "supported", (one, two)))
    again = renderer.write(Proven(Statement("B."), "supported", (two,)))
    wider = renderer.write(Proven(Statement("C."), "supported", (two, three)))
    assert (first.cites, again.cites, wider.cites) == ([1], [1], [2])
    assert (len(first.sources), len(again.sources), len(wider.sources)) == (1, 0, 1)


def test_offsets_are_relative_to_the_page() -> None:
    page = "Before it. " * 20 + TEXT
    start = page.index(TEXT)
    evidence = Evidence()
    found = chunk(TEXT, "Title › Section", "http://book/p#s", start=start)
    evidence.issue([found.model_copy(update={"relevance_score": 0.7})])
    (source,) = renderer_of(evidence).write(Proven(Statement("A."), "quoted", (evidence.all_units()[1],))).sources
    assert page[source.quote_start : source.quote_end] == source.quote == "Two is there."
    assert (source.source_url, source.relevance_score, source.page_title) == ("http://book/p#s", 0.7, "Title")
    assert source.reader_url == f"/read/{source.page_id}?quote={source.quote_start}-{source.quote_end}"


def test_citation_of_a_selection_has_lines() -> None:
    evidence = evidence_of("Title\r\n\r\nOne is here.\r\nTwo is there.")
    unit = next(unit for unit in evidence.all_units() if "Two" in unit.text)
    (source,) = renderer_of(evidence).write(Proven(Statement("A."), "quoted", (unit,))).sources
    assert isinstance(source, SelectedTextCitation)
    assert source.source_url == "selected_text"
    assert source.line_end == 4


def test_snippet_is_at_most_500_characters_and_contains_the_quote() -> None:
    evidence = evidence_of("Word " * 200 + "ends. The middle one. " + "Word " * 200)
    unit = next(unit for unit in evidence.all_units() if "middle" in unit.text)
    (source,) = renderer_of(evidence).write(Proven(Statement("A."), "quoted", (unit,))).sources
    assert len(source.chunk_text) <= 500
    assert "The middle one." in source.chunk_text


def test_snippet_and_gist_of_a_long_quote_have_the_units_that_answer() -> None:
    evidence = evidence_of("First one. " + "Some words here. " * 40 + "The answer. And its reason. " + "Word " * 60)
    units = evidence.all_units()
    answers = [unit for unit in units if unit.text in ("First one.", "The answer.", "And its reason.")]
    last = Proven(Statement("A."), "quoted", tuple(units), highlights=tuple(answers[1:]))
    (source,) = renderer_of(evidence).write(last).sources
    assert len(source.quote) > 500
    assert "The answer. And its reason." in source.chunk_text
    assert source.gist == "The answer. And its reason."
    both = Proven(Statement("A."), "quoted", tuple(units), highlights=tuple(answers))
    (source,) = renderer_of(evidence).write(both).sources
    assert source.gist == "First one. … The answer. And its reason."
    (plain,) = renderer_of(evidence).write(Proven(Statement("A."), "quoted", tuple(units))).sources
    assert plain.gist == " ".join(plain.quote.split())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A sentence.", "A sentence [1]."),
        ("A question?", "A question [1]?"),
        ("Run this:", "Run this [1]:"),
        ("No stop", "No stop [1]"),
        ("“Quoted.”", "“Quoted [1].”"),
        ("Text.\n\n```\ncode\n```", "Text.\n\n```\ncode\n```\n\n[1]"),
        ("| a |\n|---|\n| b |", "| a |\n|---|\n| b |\n\n[1]"),
        ("| a |\n|---|\n| b |\n\n…", "| a |\n|---|\n| b |\n\n… [1]"),
    ],
)
def test_position_of_markers(text: str, shown: str) -> None:
    assert marked(text, "[1]") == shown


def test_brackets_in_code_are_no_markers() -> None:
    assert without_markers("A [1][2]. `x[1]`\n```\ny[3]\n```\n[3]") == "A. `x[1]`\n```\ny[3]\n```"


def test_brackets_of_the_book_are_no_markers() -> None:
    text = "As Knuth says [1] and [2] [1][2]."
    assert markers_of(text, [1, 2]) == [(26, 29, 1), (29, 32, 2)]
    assert markers_of(text, []) == []


def test_lines_of_handles_all_line_endings() -> None:
    assert lines_of("a\r\nb\rc\nd", 3, 4) == (2, 2)
    assert lines_of("a\nb\nc", 0, 5) == (1, 3)


def test_code_with_fences_inside_keeps_its_fence() -> None:
    shown = renderer_of(evidence_of(TEXT)).write(Proven(Statement("```\nx\n```", shape="code"), "quoted"))
    assert shown.content == "````\n```\nx\n```\n````"
