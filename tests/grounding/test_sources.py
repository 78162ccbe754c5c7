from chapterverse.grounding import Evidence, Passage
from chapterverse.grounding.sources import Sources
from chapterverse.text import sentences

TEXT = "One is one. Two is two. Three is three. Four is four. Five is five."
SPANS = sentences(TEXT)


def evidence(first: int, last: int | None = None, number: int = 7) -> Evidence:
    return Evidence(Passage(number, TEXT), SPANS[first][0], SPANS[last or first][1])


def test_numbers_are_given_in_order_of_appearance() -> None:
    sources = Sources()
    assert [sources.cite(evidence(0, number=9)), sources.cite(evidence(0, number=7))] == [1, 2]
    assert [citation.passage_number for citation in sources.citations] == [9, 7]


def test_the_same_evidence_keeps_its_number() -> None:
    sources = Sources()
    assert [sources.cite(evidence(1)), sources.cite(evidence(1))] == [1, 1]


def test_evidence_that_touches_makes_the_stretch_longer() -> None:
    sources = Sources()
    assert [sources.cite(evidence(1)), sources.cite(evidence(2)), sources.cite(evidence(0))] == [1, 1, 1]
    assert sources.evidence[0].quote == "One is one. Two is two. Three is three."


def test_a_stretch_stays_short() -> None:
    sources = Sources()
    assert [sources.cite(evidence(0, 2)), sources.cite(evidence(3))] == [1, 2]


def test_evidence_far_away_is_a_source_of_its_own() -> None:
    sources = Sources()
    assert [sources.cite(evidence(0)), sources.cite(evidence(4))] == [1, 2]
    assert [one.quote for one in sources.evidence] == ["One is one.", "Five is five."]
