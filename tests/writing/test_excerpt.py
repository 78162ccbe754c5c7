"""The excerpt writer: the best passages are told in the book's words, each under a line that says where it is from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chapterverse.conversations.turns import Turn
from chapterverse.evidence.citations import Proven
from chapterverse.evidence.passages import Evidence
from chapterverse.models import ChunkResult
from chapterverse.writing import Finished, Reading, Task
from chapterverse.writing.excerpt import ExcerptWriter

GAZEBO = "Gazebo is a simulator for robots. It runs without a graphics card."
UNITY = "Unity is an engine for games. Robots are imported with a package."


def chunk(name: str, text: str) -> ChunkResult:
    return ChunkResult(
        chunk_id=name,
        chunk_text=text,
        source_url=f"{name}.html",
        page_id=name,
        page_title=name,
        section_heading=name,
        breadcrumb=f"Book › {name}",
        module="",
        chunk_index=0,
        content_hash=name,
        similarity_score=0.5,
        rank=1,
        char_start=0,
        char_end=len(text),
    )


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


async def test_the_best_passage_is_told_under_its_place() -> None:
    frame, excerpt = await shown(
        task("What is Gazebo?", [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Unity", UNITY), -3.0)])
    )
    assert (frame.statement.text, frame.kind) == ("From “Book › Gazebo”:", "frame")
    assert (excerpt.statement.text, excerpt.kind) == (GAZEBO, "quoted")
    assert excerpt.highlights and set(excerpt.highlights) <= set(excerpt.units)


async def test_a_comparison_is_told_from_both_places() -> None:
    both = [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Unity", UNITY), 1.5)]
    told = await shown(task("How do Gazebo and Unity differ?", both))
    assert [one.statement.text for one in told if one.kind == "quoted"] == [GAZEBO, UNITY]


async def test_what_says_the_same_is_told_once() -> None:
    same = [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Copy", GAZEBO), 3.0)]
    assert len(await shown(task("How do Gazebo and Unity differ?", same))) == 2


async def test_the_last_answer_is_not_told_again() -> None:
    given = task("why?", [(chunk("Gazebo", GAZEBO), 3.0)], history=(Turn("", "What is Gazebo?", GAZEBO),))
    told = Reading(3.0, 3.0, given.readings[0].units, frozenset(given.readings[0].units))
    repeated = Task(given.question, given.evidence, given.passages, "", 1.0, history=given.history, readings=(told,))
    assert await shown(repeated) == []


def after(text: str, shown_before: str, units: Mapping[str, float], told: Sequence[str] = ()) -> Task:
    """A follow-up on a text of which some was shown before, with logits of units by how they begin."""
    given = task("with a card?", [(chunk("Gazebo", text), 3.0)], history=(Turn("", "What is it?", shown_before),))
    scores = {unit.start: units.get(unit.text.split()[0], -5.0) for unit in given.passages[0].units}
    reading = Reading(3.0, 3.0, scores, frozenset(text.index(one) for one in told))
    return replace(given, readings=(reading,))


async def quotes(given: Task) -> list[str]:
    return [one.statement.text for one in await shown(given) if one.kind == "quoted"]


async def test_of_what_was_shown_before_only_what_answers_now_is_told() -> None:
    text = "Gazebo is a simulator for robots. Graphics cards are not needed."
    for logit in (-5.0, -1.0):  # whether or not the rest also seems to answer a little
        given = after(text, f"{text[:-1]} [1].", {"Gazebo": logit, "Graphics": 3.0}, told=["Gazebo"])
        assert await quotes(given) == ["Graphics cards are not needed."]


async def test_a_follow_up_is_filled_with_what_was_not_shown_before() -> None:
    seen, new = (
        "Gazebo is a simulator for robots. Graphics cards are not needed.",
        "Two cores are enough. Disks are small.",
    )
    given = after(f"{seen} {new}", f"From “Gazebo”:\n\n{seen} [1]", {"Graphics": 3.0}, told=["Gazebo"])
    assert await quotes(given) == [f"Graphics cards are not needed. {new}"]


async def test_what_is_new_does_not_draw_an_excerpt_away_from_what_answers() -> None:
    seen, new = f"Cards are needed. Long {'words ' * 110}end here.", " ".join(f"New{at} is said." for at in range(24))
    (told,) = await quotes(after(f"{seen} {new}", seen, {"Cards": -2.0}))
    assert "Cards are needed." in told


async def test_a_follow_up_is_answered_in_two_ways_that_are_nearly_as_likely() -> None:
    both = [(chunk("Gazebo", GAZEBO), 3.0), (chunk("Unity", UNITY), 1.0)]
    assert await quotes(task("why?", both)) == [GAZEBO]
    assert await quotes(task("why?", both, history=(Turn("", "What is Gazebo?", "A simulator."),))) == [GAZEBO, UNITY]


async def test_without_readings_nothing_is_told() -> None:
    assert await shown(Task("why?", Evidence(""), (), "", 1.0)) == []
