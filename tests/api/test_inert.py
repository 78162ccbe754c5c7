"""Text of the book is escaped for clients that render Markdown: none of it becomes an image, a link or HTML."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chapterverse.api.inert import Inert, inert, link_to, marked, unescaped, written

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# Plain text that GitHub's Markdown turns into a link.
AUTOLINK = re.compile(r"(?:https?|ftp)://\w|(?<![\w.])www\.\w|[\w.+-]+@[\w-]+\.[a-z]", re.I)
TOKENS = (
    *("![", "](", "[", "]", "(", ")", "<", ">", "<img src=x onerror=y>", "<!--", "-->", "<script>", "&lt;", "&#60;"),
    *("http://e.example/x", "https://e.example", "www.e.example", "me@e.example", "javascript:x", "//e.example", "[1]"),
    *(
        "`",
        "``",
        "```",
        "~~~",
        "~",
        "\n",
        "\n\n",
        " ",
        "    ",
        "- ",
        "> ",
        "1. ",
        "|",
        "\\",
        "a",
        "word ",
        ": ",
        "!",
        "*",
    ),
    *("[a]: http://e.example", "```\n", "~~~\n", "\t", "# ", "---\n", "&", "^", "_", "\r\n", "[^1]: "),
)


def active(text: str) -> list[str]:
    """The images, links and HTML that a renderer finds in a text."""
    found = []
    for token in RENDERER.parse(text):
        if token.type == "html_block":
            found.append(token.content)
        for child in token.children or ():
            if child.type in ("image", "link_open", "html_inline"):
                found.append(child.type)
            elif child.type == "text" and AUTOLINK.search(child.content):
                found.append(child.content)
    return found


@pytest.mark.slow
@settings(max_examples=1500, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=14), st.lists(st.integers(0, 40), max_size=4))
@example(["- ```\n", "![", "](", "http://e.example/x", ")", "\n", "```"], [])
@example(["    ", "~~~\n", "```\n", "~~~\n", "![", "](", "x", ")"], [])
@example(["1. ", "a", "\n\n", "   ```\n", "![", "](", "x", ")"], [])
@example(["```", "a`\n", "![", "](x)"], [3])
@example(["https:", "//e.example"], [6])
def test_escaped_text_has_no_active_content_wherever_the_stream_is_split(tokens: list[str], cuts: list[int]) -> None:
    text = "".join(tokens)
    assert not active(inert(text)), inert(text)
    places = sorted({min(cut, len(text)) for cut in cuts})
    escaping = Inert()
    pieces = [escaping.feed(text[a:b]) for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    streamed = "".join(pieces) + escaping.flush()
    assert not active(streamed), streamed


@pytest.mark.parametrize(
    "text",
    [
        "A node does **one** job, see `ros2 run`.",
        "- first\n- second\n\n1. one\n2. two",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "```bash\nros2 run <package> ![x](http://e.example)\n```\n",
        "5 > 3 and R&D",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert inert(text) == text


def test_images_html_and_addresses_are_shown_as_text() -> None:
    shown = inert("![logo](http://e.example/p.png) <img src=x> see https://e.example/a.")
    assert RENDERER.render(shown).count("<img") == 0
    assert "`https://e.example/a`." in shown
    assert unescaped(inert("![a] <b> [c]")) == "![a] <b> [c]"


def test_citation_marker_does_not_form_a_link_with_the_text_after_it() -> None:
    text = "It is red [1](//e.example) and [2]: blue."
    shown = written(inert(marked(text, [1, 2])), "[^{}]")
    assert shown.startswith("It is red [^1]\\(")
    assert not active(shown)


def test_addresses_of_the_book_are_escaped() -> None:
    assert link_to("https://book.example/a#b") == "https://book.example/a#b"
    assert link_to("https://book.example/a b<c>)](x") == "https://book.example/a%20b%3Cc%3E%29%5D%28x"
    assert not active(link_to("book/![x](y).md"))
