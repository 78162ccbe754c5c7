"""Drafted questions have evidence on the page they name and can be saved and loaded."""

from pathlib import Path

import pytest

from chapterverse.book import Block, Page, Section, page_id_for
from chapterverse.evaluation.drafting import draft_questions, to_line
from chapterverse.evaluation.questions import load_questions


def page(name: str, title: str, sections: dict[str, str]) -> Page:
    text, blocks, made = f"# {title}\n\n", [], []
    for number, (heading, paragraph) in enumerate(sections.items()):
        begin = len(text)
        text += f"## {heading}\n\n" if heading else ""
        blocks.append(Block("paragraph", len(text), len(text) + len(paragraph), number))
        text += paragraph + "\n\n"
        made.append(Section(heading or title, 2 if heading else 1, "", begin, len(text), ()))
    return Page(page_id_for(name), name, title, "m", "s", text, tuple(made), tuple(blocks))


ROBOT = page(
    "intro/tern.md",
    "Tern",
    {
        "": "Tern is a small robot with two driven wheels and a caster. It is the best of all robots that we know.",
        "Why two wheels?": "Many builders start with two wheels and a caster. Tern is used to try things out.",
        "Power": "Tern carries a spare battery, because the first one lasts for two hours.",
    },
)
GRAPH = page(
    "ros2/nodes.md",
    "Nodes",
    {
        "": "A node is a participant in the graph that does one job. This is a sentence that points back at another.",
        "Names": "Estimating position by adding up wheel motion is called odometry, and its error grows.",
    },
)


def drafted(count: int = 40, *pages: Page) -> dict[str, str]:
    return {one.question: "".join(one.answer) for one in draft_questions(pages or (ROBOT, GRAPH), count)}


def test_sentences_and_headings_become_questions() -> None:
    found = drafted()
    assert found["What is Tern?"] == "a small robot with two driven wheels and a caster"
    assert found["What is a node?"] == "a participant in the graph that does one job"
    assert found["What is Tern used for?"] == "to try things out"
    assert found["What is meant by odometry?"] == "Estimating position by adding up wheel motion"
    assert found["Why is it that Tern carries a spare battery?"] == "the first one lasts for two hours"
    assert "Why two wheels?" in found
    assert "What does the book say about “Power” (Tern)?" in found


def test_text_that_is_too_long_for_a_question_gives_none_and_a_page_needs_no_title() -> None:
    long = page(
        "long.md",
        "Long",
        {"very long heading " * 120: "A node is a part of the graph.", "Token": f"{'t' * 2100} is a node."},
    )
    assert list(drafted(40, long)) == ["What is a node?"]
    untitled = page("untitled.md", "", {"": "A node is a participant in the graph."})
    (draft,) = draft_questions([untitled], 1)
    assert draft.section is None


def test_sentence_that_refers_back_gives_no_question() -> None:
    assert not [asked for asked in drafted() if asked.lower().startswith(("what is it", "what is this"))]


def test_every_draft_has_evidence_or_must_be_checked() -> None:
    texts = {one.url: one for one in (ROBOT, GRAPH)}
    for draft in draft_questions([ROBOT, GRAPH], 40):
        if draft.answerable:
            (named,), (sentence,) = draft.page, draft.sentence
            assert sentence in texts[named].text
            assert draft.section in {section.heading for section in texts[named].sections}
        else:
            assert draft.check
            assert draft.why


def test_unanswerable_drafts_combine_subjects_of_different_pages() -> None:
    refused = [draft for draft in draft_questions([ROBOT, GRAPH], 40) if not draft.answerable]
    assert [draft.question for draft in refused] == [
        "Why is it that a node carries a spare battery?",
        "What does Tern have to do with odometry?",
    ]
    both = page("both.md", "Both", {"": "A node runs on Tern and does odometry all day long, as everybody knows."})
    joined = draft_questions([ROBOT, GRAPH, both], 40)
    assert all(draft.answerable for draft in joined)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_number_of_drafts_is_limited_and_spread_over_pages(count: int) -> None:
    drafts = draft_questions([ROBOT, GRAPH], count)
    assert len(drafts) == count
    assert len({draft.id for draft in drafts}) == count
    assert {named for draft in drafts for named in draft.page} == {"intro/tern.md", "ros2/nodes.md"} or count == 1


def test_drafts_can_be_saved_and_loaded(tmp_path: Path) -> None:
    drafts = draft_questions([ROBOT, GRAPH], 12)
    (tmp_path / "set").write_text("\n".join(map(to_line, drafts)), "utf-8")
    assert load_questions(tmp_path / "set") == drafts
    assert "null" not in (tmp_path / "set").read_text("utf-8")


def test_empty_book_gives_no_drafts() -> None:
    assert draft_questions([], 5) == []
    assert draft_questions([page("x", "X", {"": ""})], 5) == []
