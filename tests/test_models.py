"""Models of the API that do more than hold values."""

from chapterverse.models import ChunkResult, NearSection


def section(quote: str) -> NearSection:
    return NearSection(source_url="book/a.md#b", page_title="A", section_heading="B", score=0.5, quote=quote)


def test_code_on_one_line_is_part_of_the_quote() -> None:
    assert section("```make all``` builds it.").quoted() == "\n  “```make all``` builds it.”"
    assert section("```sh\nmake all\n```\n\n~~~ `sh`\nmake\n~~~").quoted() == "\n  “make all · make”"


def test_at_most_four_lines_of_a_section_are_quoted() -> None:
    assert section("- a\n- b\n\n- c\n- d").quoted() == "\n  “- a · - b · - c · - d”"
    assert section("```\na\nb\nc\nd\ne\n```").quoted() == "\n  “a · b · c · d …”"


def test_nearest_section_has_its_address_in_the_reader_page() -> None:
    chunk = ChunkResult(
        chunk_id="1", chunk_text="Said.", source_url="book/a.md#größe-1", page_title="A", section_heading="B",
        breadcrumb="A › B", module="", chunk_index=0, similarity_score=0.5, rank=1, page_id="p", content_hash="",
        char_start=0, char_end=5,
    )  # fmt: skip
    assert NearSection.of(chunk).reader_url == "/read/p#book-gr%C3%B6%C3%9Fe-1"
    without = chunk.model_copy(update={"source_url": "book/a.md"})
    assert NearSection.of(without).reader_url == "/read/p"
