"""Styles that hide text, and styles that do not."""

import pytest

from chapterverse.ingestion.document import Document
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.readers.hidden_text import ground_of, hides

SECRET = "purple walrus"


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "color: red; display : none !important",
        "VISIBILITY: hidden",
        "opacity:0",
        "opacity: 0.02;",
        "font-size:0",
        "font-size:0.1px",
        "font-size: 1px",
        "font-size: .05em",
        "position:absolute;left:-9999px",
        "text-indent:-10000px",
        "height:0;overflow:hidden",
        "width:1px;height:1px;overflow:hidden;position:absolute",
        "clip: rect(0, 0, 0, 0)",
        "clip-path: inset(50%)",
        "transform:scale(0)",
        "color:white",
        "color:#FFF;background:white",
        "color: rgb(255, 255, 255)",
        "color:#fefefe",
        "color:transparent",
        "color: rgba(0, 0, 0, 0)",
        "color:#222;background-color:#222222",
        "{display: 'none'}",
        "{fontSize: '0px', color: 'red'}",
        '{backgroundColor: "#000", color: "black"}',
    ],
)
def test_hiding_styles_are_recognised(style: str) -> None:
    assert hides(style)


@pytest.mark.parametrize(
    "style",
    [
        "",
        "display:block",
        "opacity:0.5",
        "opacity: 1",
        "font-size:10px",
        "font-size: 0.8em",
        "font-size:100%",
        "left:-10px",
        "height:0",
        "height:100px;overflow:hidden",
        "max-width:100%;overflow:hidden",
        "color:#333",
        "color:white;background:navy",
        "color:white;background-color:#282a36",
        "background:white",
        "border-color:white",
        "--prism-color:#fff",
        "color:var(--text)",
        "color:#f8f8f2",
    ],
)
def test_other_styles_do_not_hide(style: str) -> None:
    assert not hides(style, behind=None if "f8f8f2" in style else (255, 255, 255))


def test_text_colour_is_compared_with_the_background() -> None:
    assert hides("color:#000", behind=(0, 0, 0))
    assert not hides("color:#fff", behind=(0, 0, 0))
    assert not hides("color:#fff", behind=None), "the background is unknown"
    assert ground_of("--prism-background-color: #282A36", None) == (0x28, 0x2A, 0x36)
    assert ground_of("background: transparent", (1, 2, 3)) == ground_of("color: red", (1, 2, 3)) == (1, 2, 3)
    assert ground_of("background: url(dark.png)", (1, 2, 3)) is None


@pytest.mark.parametrize(
    ("path", "page", "seen"),
    [
        ("a.html", f"<p>Text.</p><p style='color:white'>{SECRET}</p>", False),
        ("a.html", f"<p>Text.</p><div style='background:#111'><p style='color:white'>{SECRET}</p></div>", True),
        (
            "a.html",
            f"<p>Text.</p><div style='background:linear-gradient(red,blue)'><b style='color:#fff'>{SECRET}</b></div>",
            True,
        ),
        ("a.html", f"<p>Text.</p><pre><code><span style='color:#fff'>{SECRET}</span></code></pre>", True),
        ("a.html", f"<style>.x{{font-size:1px}}</style><p>Text.</p><p class=x>{SECRET}</p>", False),
        ("a.md", f'Text.\n\n<div style="opacity:0">\n\n{SECRET}\n\n</div>\n', False),
        ("a.md", f'Text <span style="color:#fff">{SECRET}</span> more.\n', False),
        ("a.md", f'Text <span aria-hidden="true">{SECRET}</span> more.\n', False),
        ("a.md", f'Text <span style="color:#c00">{SECRET}</span> more.\n', True),
        ("a.mdx", f"Text.\n\n<div style={{{{fontSize: 0}}}}>{SECRET}</div>\n", False),
        ("a.mdx", f"Text.\n\n<div style={{{{color: 'red'}}}}>{SECRET}</div>\n", True),
    ],
)
def test_hidden_text_is_not_read(path: str, page: str, seen: bool) -> None:
    form = {"html": "html", "md": "markdown", "mdx": "mdx"}[path.split(".")[1]]
    (draft,) = read(Document("https://book.example/a", path, "book", form, page.encode()))
    assert (SECRET in " ".join(part.text for part in draft.parts)) == seen
