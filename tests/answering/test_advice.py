"""The advice that a refusal gives after its fixed sentence."""

from chapterverse.answering.refusals import NEAR, NEAREST, nearest_sections
from chapterverse.answering.refusals import advise as advise_on
from chapterverse.answering.scope import Book, Selection
from chapterverse.models import ChunkResult, SearchResult


def chunk(number: int, heading: str, text: str, relevance: float = 0.8) -> ChunkResult:
    return ChunkResult(
        chunk_id=f"id-{number}",
        chunk_text=text,
        source_url=f"http://book/gazebo#{heading.lower()}",
        page_title="Gazebo",
        section_heading=heading,
        breadcrumb=f"Gazebo › {heading}",
        module="simulation",
        chunk_index=number,
        similarity_score=0.5,
        relevance_score=relevance,
        rank=number,
        page_id="page",
        content_hash=f"hash-{number}",
        char_start=0,
        char_end=len(text),
    )


def found(*chunks: ChunkResult) -> SearchResult:
    return SearchResult(results=list(chunks), total_results=len(chunks), query="q", latency_ms=1.0)


def advise(question: str, result: SearchResult) -> str:
    return advise_on(question, Book(result), nearest_sections(result))


SYSTEMS = chunk(1, "Systems", "Everything that Gazebo does is done by plugins. One of them does physics.")
WORLDS = chunk(2, "Worlds", "A world is a file.")


def test_advice_names_words_that_the_nearest_sections_do_not_mention() -> None:
    advice = advise("What is the default physics step of Gazebo?", found(SYSTEMS, WORLDS))
    first, *sections = advice.split("\n")
    assert first == (
        "Searched for “What is the default physics step of Gazebo?”. "
        "The nearest sections do not mention “default” or “step”."
    )
    assert sections == [
        "- Gazebo › Systems: http://book/gazebo#systems",
        "- Gazebo › Worlds: http://book/gazebo#worlds",
    ]


def test_advice_if_all_words_or_no_sections_are_found() -> None:
    assert "do not mention “sourdough” or “starter”" in advise("sourdough starter", found(SYSTEMS))
    assert "do not answer this" in advise("physics of Gazebo", found(SYSTEMS))
    assert advise("sourdough", found()) == "Searched for “sourdough”. No section of the book comes near."


def test_nearest_sections_are_unique_and_at_most_three() -> None:
    again = chunk(3, "Systems", "More plugins.")
    others = [chunk(number, f"Part{number}", "text") for number in range(4, 9)]
    nearest = nearest_sections(found(SYSTEMS, again, WORLDS, *others))
    assert [section.section_heading for section in nearest] == ["Systems", "Worlds", "Part4"]
    assert len(nearest) == NEAREST
    far, farther = chunk(9, "Far", "Far away.", NEAR - 0.01), chunk(10, "Farther", "Farther away.", NEAR - 0.02)
    assert [section.section_heading for section in nearest_sections(found(far, farther))] == ["Far"]


def test_advice_for_a_selection() -> None:
    advice = advise_on("When did the airport open?", Selection("The university opened in 1816."), [])
    assert advice == "Only the selection was read. It does not mention “airport”."
