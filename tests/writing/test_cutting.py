"""Excerpts begin where a reader can begin and end where nothing is announced."""

import pytest

from chapterverse.evidence.passages import Evidence, IssuedPassage
from chapterverse.models import ChunkResult
from chapterverse.writing.cutting import (
    CODE_LINES,
    MOST_WORDS,
    announces,
    cut_excerpt,
    near_duplicates,
)

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
    chunk = ChunkResult(
        chunk_id="c",
        chunk_text=text,
        source_url="u",
        page_id="p",
        page_title="Page",
        section_heading="Painters",
        breadcrumb="Page › Painters",
        module="",
        chunk_index=0,
        content_hash="h",
        similarity_score=0.5,
        rank=1,
        char_start=0,
        char_end=len(text),
    )
    return Evidence("").issue([chunk])[0]


def excerpt(best: str, text: str = SECTION) -> str:
    """The text of the excerpt around the unit that begins with these words."""
    issued = passage(text)
    scores = {unit.start: 3.0 if unit.text.startswith(best) else -5.0 for unit in issued.units}
    found = cut_excerpt(issued, scores, "How do I register a painter?", "Painters")
    assert found is not None
    assert any(unit.text.startswith(best) for unit in found.highlights)
    return found.statement.text


def test_a_dangling_beginning_takes_what_stands_before_it() -> None:
    assert "The painter can be replaced. However" in excerpt("However, it must")


def test_numbered_steps_begin_with_their_lead_in_and_the_first() -> None:
    shown = excerpt("3. Restart")
    assert "To register a painter, do this:\n\n1. Write the class.\n2. Call the registry.\n3. Restart" in shown


def test_a_lead_in_comes_with_what_it_announces() -> None:
    assert "1. Write the class." in excerpt("To register a painter")


def test_a_table_row_comes_with_its_header() -> None:
    shown = excerpt("| color")
    assert "| name | default |\n| --- | --- |\n" in shown
    assert "| color | red |" in shown


def test_a_row_of_a_long_table_is_told_under_the_header() -> None:
    rows = "\n".join(f"| option{at} | {'word ' * 12}|" for at in range(40))
    found = excerpt("| option30", f"Options are listed.\n\n| name | meaning |\n| --- | --- |\n{rows}\n")
    assert found.startswith("| name | meaning |\n| --- | --- |\n| option")
    assert len(found.split()) < 2 * MOST_WORDS


def test_what_dangles_at_the_beginning_of_its_section_comes_under_the_heading() -> None:
    assert excerpt("It draws", "It draws widgets.\n\nNothing more.\n").startswith("### Painters\n\nIt draws")


def test_an_excerpt_does_not_grow_without_end() -> None:
    long = "\n\n".join(f"Paragraph {at} says something of about ten words in all here." for at in range(60))
    assert len(excerpt("Paragraph 30", long).split()) <= MOST_WORDS


def test_long_code_is_cut_and_says_so() -> None:
    body = "\n\n".join(f"def step_{at}():\n    return {at}" for at in range(60))
    shown = excerpt("```", f"Here is all of it:\n\n```python\n{body}\n```\n")
    assert shown.count("\n") < CODE_LINES + 10
    assert "\n…\n```" in shown
    assert shown.count("```") == 2


def test_nothing_read_is_no_excerpt() -> None:
    assert cut_excerpt(passage(), {}, "why", "") is None


@pytest.mark.parametrize("text", ["Do this:", "The steps are as follows", "See below."])
def test_announcements(text: str) -> None:
    assert announces(text)
    assert not announces(f"{text} Done.")


def test_near_duplicates() -> None:
    assert near_duplicates(SECTION, SECTION[:200])
    assert not near_duplicates(SECTION, "Something else entirely is written here, with other words.")
