"""Models of the API that do more than hold values."""

from chapterverse.models import NearSection


def section(quote: str) -> NearSection:
    return NearSection(source_url="book/a.md#b", page_title="A", section_heading="B", score=0.5, quote=quote)


def test_code_on_one_line_is_part_of_the_quote() -> None:
    assert section("```make all``` builds it.").quoted() == "\n  “```make all``` builds it.”"
    assert section("```sh\nmake all\n```\n\n~~~ `sh`\nmake\n~~~").quoted() == "\n  “make all · make”"
