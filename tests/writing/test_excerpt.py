"""The excerpt writer quotes the best passages, each after a line that names its section."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from chapterverse.book import Page, Section
from chapterverse.conversations.turns import Turn
from chapterverse.evidence.citations import Proven
from chapterverse.evidence.passages import Evidence
from chapterverse.models import ChunkResult
from chapterverse.units import blocks_of_text
from chapterverse.writing import Finished, Reading, Task
from chapterverse.writing.excerpt import ExcerptWriter
from tests.chunks import chunk as found

GAZEBO = "Gazebo is a simulator for robots. It runs without a graphics card."
UNITY = "Unity is an engine for games. Robots are imported with a package."


def chunk(name: str, text: str, start: int = 0) -> ChunkResult:
    names = {"chunk_id": name, "page_id": name, "page_title": name, "section_heading": name}
    return found(text, f"Book › {name}", f"{name}.html", start=start).model_copy(update=names)


def task(question: str, read: Sequence[tuple[ChunkResult, float]], **more: object) -> Task:
    evidence = Evidence(question)
    passages = tuple(evidence.issue([one for one, _ in read]))
    readings = tuple(
        Reading(score, score, {unit.start: score - at for at, unit in enumerate(passage.units)})
        for passage, (_, score) in zip(passages, read, strict=True)
    )
    return Task(question, evidence, passages, "", 1.0, readings=readings, **more)  # type: ignore[arg-type]


async def shown(given: Task) -> list[Proven]:
    events = [event async for event in ExcerptWriter().write(given)]
    assert isinstance(events[-1], Finished)
    return [event for event in events if isinstance(event, Proven)]


async def test_best_passage_is_quoted_after_the_name_of_its_section() -> None:
    frame, excerpt = await shown(
        task("What is Gazebo?", [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Unity", UNITY), -3.0)])
    )
    assert (frame.statement.text, frame.kind) == ("From “Book › Gazebo”:", "frame")
    assert (excerpt.statement.text, excerpt.kind) == (GAZEBO, "quoted")
    assert excerpt.highlights and set(excerpt.highlights) <= set(excerpt.units)


async def test_comparison_quotes_both_sections() -> None:
    both = [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Unity", UNITY), 1.5)]
    statements = await shown(task("How do Gazebo and Unity differ?", both))
    assert [one.statement.text for one in statements if one.kind == "quoted"] == [GAZEBO, UNITY]


async def test_duplicate_passage_is_quoted_once() -> None:
    same = [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Copy", GAZEBO), 3.0)]
    assert len(await shown(task("How do Gazebo and Unity differ?", same))) == 2


def of_one_section(second: Mapping[str, float]) -> Task:
    """Two passages of one section that answer equally well, far from each other, with logits of the second's units."""
    parts = GAZEBO, f"Long {'words ' * 155}stand between.", UNITY
    text = "\n\n".join(parts)
    first = chunk("Page", GAZEBO)
    later = chunk("Page", UNITY, text.index(UNITY)).model_copy(update={"chunk_id": "later"})
    page = Page("Page", "u", "Page", "", "", text, (Section("", 1, "", 0, len(text), ()),), tuple(blocks_of_text(text)))
    given = task("How are robots imported?", [(first, 3.0), (later, 3.0)])
    units = {unit.start: second.get(unit.text.split()[0], -5.0) for unit in given.passages[1].units}
    wider = [given.evidence.widen(passage, page) for passage in given.passages]
    return replace(given, passages=wider, readings=(given.readings[0], Reading(3.0, 3.0, units)))


async def test_two_passages_of_one_section_are_both_told() -> None:
    one, two = await quotes(of_one_section({"Unity": 1.0, "Robots": 2.0}))
    assert GAZEBO in one and UNITY not in one
    assert UNITY in two and GAZEBO not in two


async def test_a_passage_whose_answer_is_shown_already_is_not_told_again() -> None:
    given = of_one_section({})
    shown_units = dict(given.readings[0].units)  # the second passage answers by a unit that the first excerpt shows
    again = Reading(3.0, 3.0, {**given.readings[1].units, **shown_units})
    assert len(await quotes(replace(given, readings=(given.readings[0], again)))) == 1


async def test_last_answer_is_not_repeated() -> None:
    given = task("why?", [(chunk("Gazebo", GAZEBO), 3.0)], history=(Turn("", "What is Gazebo?", GAZEBO),))
    reading = Reading(3.0, 3.0, given.readings[0].units, frozenset(given.readings[0].units))
    repeated = Task(given.question, given.evidence, given.passages, "", 1.0, history=given.history, readings=(reading,))
    assert await shown(repeated) == []


async def test_unit_of_the_last_answer_is_told_again_alone_where_nothing_else_comes_near() -> None:
    text = "Arming is refused in a landing. Restart the mission to clear it."
    given = after(text, text, {"Arming": -1.0, "Restart": 3.0}, marked=["Arming", "Restart"])
    turn = replace(given.history[0], sources=({"quote": text},))
    far = task("with a card?", [(chunk("Gazebo", text), 3.0), (chunk("Unity", UNITY), -2.0)], history=(turn,))
    assert await quotes(replace(far, readings=(given.readings[0], far.readings[1]))) == [
        "Restart the mission to clear it."
    ]


@pytest.mark.parametrize("text", ["# The server uses port 8080", "Set these variables:\n\n- PORT\n- HOST"])
async def test_follow_up_on_a_heading_or_an_announcement_alone_is_not_answered(text: str) -> None:
    given = after(text, text, {"Set": 3.0}, marked=["Set"] if "Set" in text else [])
    turn = replace(given.history[0], sources=({"quote": text},))
    marked = replace(given.readings[0], shown_before=frozenset(given.readings[0].units))
    assert await quotes(replace(given, history=(turn,), readings=(marked,))) == []


def after(text: str, shown_before: str, units: Mapping[str, float], marked: Sequence[str] = ()) -> Task:
    """A follow-up on a text that was partly shown before; `units` has the logit of a unit by its first word."""
    given = task("with a card?", [(chunk("Gazebo", text), 3.0)], history=(Turn("", "What is it?", shown_before),))
    scores = {unit.start: units.get(unit.text.split()[0], -5.0) for unit in given.passages[0].units}
    reading = Reading(3.0, 3.0, scores, frozenset(text.index(one) for one in marked))
    return replace(given, readings=(reading,))


async def quotes(given: Task) -> list[str]:
    return [one.statement.text for one in await shown(given) if one.kind == "quoted"]


async def test_of_text_shown_before_only_the_answering_unit_is_quoted() -> None:
    text = "Gazebo is a simulator for robots. Graphics cards are not needed."
    for logit in (-5.0, -1.0):  # whether or not the other unit has some score
        given = after(text, f"{text[:-1]} [1].", {"Gazebo": logit, "Graphics": 3.0}, marked=["Gazebo"])
        assert await quotes(given) == ["Graphics cards are not needed."]


async def test_the_last_answer_is_not_given_again_as_a_whole() -> None:
    text = "Gazebo is a simulator for robots. Graphics cards are not needed."
    given = after(text, f"{text[:-1]} [1].", {"Gazebo": 3.0, "Graphics": 3.0}, marked=["Gazebo"])
    turn = replace(given.history[0], sources=({"quote": text},))
    assert await quotes(replace(given, history=(turn,))) == ["Graphics cards are not needed."]


async def test_excerpt_of_a_follow_up_is_filled_with_new_text() -> None:
    seen, new = (
        "Gazebo is a simulator for robots. Graphics cards are not needed.",
        "Two cores are enough. Disks are small.",
    )
    given = after(f"{seen} {new}", f"From “Gazebo”:\n\n{seen} [1]", {"Graphics": 3.0}, marked=["Gazebo"])
    assert await quotes(given) == [f"Graphics cards are not needed. {new}"]


async def test_new_text_does_not_displace_the_answering_unit() -> None:
    seen, new = f"Cards are needed. Long {'words ' * 110}end here.", " ".join(f"New{at} is said." for at in range(24))
    (text,) = await quotes(after(f"{seen} {new}", seen, {"Cards": -2.0}))
    assert "Cards are needed." in text


async def test_follow_up_quotes_two_passages_of_similar_score() -> None:
    both = [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Unity", UNITY), 1.0)]
    assert await quotes(task("why?", both)) == [GAZEBO]
    assert await quotes(task("why?", both, history=(Turn("", "What is Gazebo?", "A simulator."),))) == [GAZEBO, UNITY]


async def test_two_passages_are_told_if_either_may_be_the_answer() -> None:
    near, far = ([(chunk("Gazebo", GAZEBO), 3.0), (chunk("Unity", UNITY), score)] for score in (1.6, 1.4))
    assert await quotes(task("why?", near)) == [GAZEBO, UNITY]
    assert await quotes(task("why?", far)) == [GAZEBO]


async def test_without_readings_nothing_is_written() -> None:
    assert await shown(Task("why?", Evidence(""), (), "", 1.0)) == []
