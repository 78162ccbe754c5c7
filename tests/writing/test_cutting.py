"""Excerpts start and end so that they can be understood without the rest of the section."""

from dataclasses import replace
from itertools import count

import pytest

from chapterverse.evidence.passages import Evidence, IssuedPassage, IssuedUnit
from chapterverse.writing.cutting import (
    CODE_LINES,
    MOST_WORDS,
    announces,
    cut_excerpt,
    near_duplicates,
)
from tests.chunks import chunk

SECTION = """Widgets are drawn by the painter.

The painter can be replaced. However, it must be registered first. To register a painter, do this:

1. Write the class.
2. Call the registry.
3. Restart the server.

```python
registry.add(Painter)
```

Unrelated closing words stand here.

| name | default |
| --- | --- |
| size | 10 |
| color | red |
"""


def passage(text: str = SECTION) -> IssuedPassage:
    return Evidence("").issue([chunk(text, "Page › Painters")])[0]


def excerpt(best: str, text: str = SECTION) -> str:
    """The text of the excerpt around the unit that starts with these words."""
    issued = passage(text)
    scores = {unit.start: 3.0 if unit.text.startswith(best) else -5.0 for unit in issued.units}
    found = cut_excerpt(issued, scores, "How do I register a painter?", "Painters")
    assert found is not None
    assert any(unit.text.startswith(best) for unit in found.highlights)
    return found.statement.text


def test_excerpt_includes_the_sentence_that_its_first_one_refers_to() -> None:
    assert "The painter can be replaced. However" in excerpt("However, it must")


def test_half_a_sentence_before_code_is_shown_only_with_the_code() -> None:
    long = "\n".join(f"print({at})" for at in range(30))
    text = f"Colors are set once. It is done so:\n\n```\n{long}\n```\n\nYou will then see\n\n```\n{long}\n```\n"
    assert "You will then see" not in excerpt("Colors are set", text)


def test_section_that_only_announces_gives_no_excerpt() -> None:
    issued = passage("You should see the following screen:\n\nThe interface has several sections:\n")
    assert cut_excerpt(issued, {unit.start: 2.0 for unit in issued.units}, "What is the GUI?", "GUI") is None


def test_excerpt_has_the_best_unit_where_a_run_of_others_would_count_more() -> None:
    middling = " ".join(f"Word {at} is {'long ' * 10}here." for at in range(8))
    text = f"The port is 80.\n\n{'Filler ' * 110}ends.\n\n{middling}\n"
    issued = passage(text)
    scores = {unit.start: 2.0 if "port" in unit.text else 1.0 for unit in issued.units if "Filler" not in unit.text}
    found = cut_excerpt(issued, scores, "Which port?", "Ports")
    assert found is not None
    assert "The port is 80." in found.statement.text


def test_excerpt_is_not_filled_with_another_definition() -> None:
    text = "Old notes.\n\n`wrap(f)`\nKeeps the name.\n\nIt copies the text.\n\n`cache(f)`\nKeeps results.\n"
    issued = passage(text)
    topics = [text.index(part) for part in ("Old", "`wrap", "`cache")]
    units = tuple(replace(unit, topic=max(at for at in topics if at <= unit.start)) for unit in issued.units)
    scores = {unit.start: 3.0 if unit.text.startswith("It copies") else -5.0 for unit in units}
    found = cut_excerpt(replace(issued, units=units), scores, "What is copied?", "Tools")
    assert found is not None
    assert "wrap(f)" in found.statement.text
    assert "Old notes" not in found.statement.text and "cache(f)" not in found.statement.text


def test_excerpt_that_starts_with_for_example_includes_the_sentence_before() -> None:
    text = "Painters take turns.\n\nPass the same canvas twice. For example,\n\n```python\npaint(x, out=x)\n```\n"
    issued = passage(text)
    scores = {unit.start: 3.0 if unit.kind == "code" else -9.0 for unit in issued.units}
    found = cut_excerpt(issued, scores, "in place?", "", fill=False)
    assert found is not None and found.statement.text.startswith("Pass the same canvas twice. For example,")


@pytest.mark.parametrize(
    "opener", ["In each of these modes", "For any other painter", "The previous size", "Alternatively"]
)
def test_excerpt_does_not_begin_by_referring_to_the_sentence_before(opener: str) -> None:
    text = f"Painters have a size. {opener}, colors are set once. They stay."
    assert excerpt("They stay", text).startswith("Painters have a size.")


def test_numbered_steps_start_with_their_lead_in_and_step_one() -> None:
    shown = excerpt("3. Restart")
    assert "To register a painter, do this:\n\n1. Write the class.\n2. Call the registry.\n3. Restart" in shown


def test_lead_in_includes_its_list() -> None:
    assert "1. Write the class." in excerpt("To register a painter")


def test_table_row_includes_its_header() -> None:
    shown = excerpt("| color")
    assert "| name | default |\n| --- | --- |\n" in shown
    assert "| color | red |" in shown


def test_row_of_a_long_table_includes_the_header_but_not_all_rows() -> None:
    rows = "\n".join(f"| option{at} | {'word ' * 12}|" for at in range(40))
    found = excerpt("| option30", f"Options are listed.\n\n| name | meaning |\n| --- | --- |\n{rows}\n")
    assert found.startswith("| name | meaning |\n| --- | --- |\n| option")
    assert len(found.split()) < 2 * MOST_WORDS


def test_reference_at_the_start_of_a_section_includes_the_heading() -> None:
    assert excerpt("It draws", "It draws widgets.\n\nNothing more.\n").startswith("### Painters\n\nIt draws")


def test_excerpt_has_at_most_most_words() -> None:
    long = "\n\n".join(f"Paragraph {at} says something of about ten words in all here." for at in range(60))
    assert len(excerpt("Paragraph 30", long).split()) <= MOST_WORDS


def test_image_without_a_text_is_left_out() -> None:
    code = "```ini\n[Image]\nImage=quay.io/painter\n```"
    text = f"The painter is a class.\n\n[Image]\n\n[Image: a painted widget]\n\nIt draws widgets:\n\n{code}"
    whole = passage(text)
    units = tuple(unit for unit in whole.units if not unit.text.startswith("[Image"))  # images are not units
    scores = {unit.start: 3.0 for unit in units}
    found = cut_excerpt(replace(whole, units=tuple(map(renumbered, units, count(1)))), scores, "painter", "Painters")
    assert found is not None
    assert found.statement.text == text.replace("[Image]\n\n[Image:", "[Image:")


def renumbered(unit: IssuedUnit, number: int) -> IssuedUnit:
    return replace(unit, ref=unit.ref._replace(unit=number))


def test_shortened_list_ends_with_an_ellipsis() -> None:
    text = "Look at these:\n\n" + "".join(f"- Item {at}: {'word ' * 30}\n" for at in range(8))
    shown = excerpt("- Item 0", text)
    assert "Item 1" in shown and "Item 7" not in shown and shown.endswith("\n\n…")
    assert not excerpt("1. Write").endswith("…")


def test_list_is_completed_if_only_little_of_it_is_left() -> None:
    items = [f"- Item {number} {'word ' * 25}end." for number in range(1, 7)]  # four of them fit
    shown = excerpt("- Item 1", "\n".join(items))
    assert "Item 5" not in shown and shown.endswith("\n\n…")
    shown = excerpt("- Item 1", "\n".join(items[:5]))
    assert "Item 5" in shown and not shown.endswith("…")


def test_shortened_code_ends_with_an_ellipsis() -> None:
    body = "\n\n".join(f"def step_{at}():\n    return {at}" for at in range(60))
    shown = excerpt("```", f"Here is all of it:\n\n```python\n{body}\n```\n")
    assert shown.count("\n") < CODE_LINES + 10
    assert "\n…\n```" in shown
    assert shown.count("```") == 2


def test_no_scores_give_no_excerpt() -> None:
    assert cut_excerpt(passage(), {}, "why", "") is None


@pytest.mark.parametrize("text", ["Do this:", "The steps are as follows", "See below."])
def test_announcements_are_recognised(text: str) -> None:
    assert announces(text)
    assert not announces(f"{text} Done.")


def test_near_duplicates_are_recognised() -> None:
    assert near_duplicates(SECTION, SECTION[:200])
    assert not near_duplicates(SECTION, "Something else entirely is written here, with other words.")


def test_list_whose_last_item_announces_code_is_shown_without_that_item() -> None:
    ways = "\n- ".join(f"Way {number} {'word ' * 14}" for number in range(8))
    text = (
        f"Heron has these ways to start:\n\n- {ways}\n- Start it by hand with this command:\n\n```\nheron start\n```\n"
    )
    shown = excerpt("- Way 2", text)
    assert "Way 7" not in shown or "heron start" in shown


def test_list_that_goes_on_beyond_the_units_considered_ends_with_dots() -> None:
    text = "Parts:\n\n- " + "\n- ".join(f"part {number}" for number in range(60))
    assert excerpt("- part 0", text).endswith("…")


@pytest.mark.parametrize("line", ["    option_{} = default_value_{}  # note", "option_{} = {}" + "x" * 80])
def test_piece_of_very_long_code_is_shown_between_fences(line: str) -> None:
    code = "\n".join(line.format(number, number) for number in range(160))
    text = f"Heron is configured like this:\n\n```\n{code}\n```\n"
    for unit in passage(text).units:
        if unit.kind == "code":
            assert excerpt(unit.text[:40], text).count("```") == 2
