"""How the reader page renders the blocks and marks of a page, without active content."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from chapterverse.book import Page as BookPage
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Tree
from chapterverse.ingestion.images import find_image, keep_images
from chapterverse.ingestion.readers import read
from tests.browser.chromium import shoot, visiting
from tests.browser.shelf import Shelf, scripted_server
from tests.scripted import Scripted
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FIRST = """# Everything 🤖

A *slanted* and **strong** word, H<sub>2</sub>O, `code`, [the `second` page](second.md#part-two), [elsewhere](https://else.test/x),
[nowhere](javascript:alert(1)) and a picture ![dot](dot.svg) in the line.[^n] Maths: $x_1 = \\frac{a}{b}$ and $n$.

![A drawing](dot.svg)

![Of another site](https://else.test/a.png)

<figure><img src="dot.svg" alt="A captioned drawing"><figcaption>The <b>captioned</b> drawing</figcaption></figure>

<table><caption>The sizes</caption><tr><th>Size</th></tr><tr><td>XL</td></tr></table>

!!! tip "Is `this` a title?"
    It is.

!!! danger
    Do **not** touch:

    - hot
    - sharp

1. one
   - inner *one*
2. two

| Name | Value |
|---|---|
| **a** \\| b | [c](second.md) |
| ![in a cell](dot.svg) words | d |

Term
: What it *means*.

```python title="main.py"
print("<b>")  # <script>alert(1)</script>
```

> Said **so**.

## cv-ask

The last words.

[^n]: The note.
"""
NESTED = """# Nested

1. Build it:

   ```
   make
   ```

   Wait.
   - soon

     ```
     sleep 1
     ```
   - done
2. Run it.

!!! note
    ```
    first
    ```

    And then.

    | a | b |
    |---|---|
    | 1 | 2 |

After.

- A list of its own.
"""
SECOND = "# Second\n\nWords.\n\n## Part two\n\nMore [back](first.md).\n"
LINKS = """# Links

[to a port](http://localhost:PORT/), [below](#über-uns), [out](https://else.test:80801/).

## Über uns

We.
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def pages(home: Path, tmp_path_factory: pytest.TempPathFactory) -> list[BookPage]:
    folder = tmp_path_factory.mktemp("book")
    dot = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><circle cx="9" cy="9" r="9"/></svg>'
    for name, text in (
        ("first.md", FIRST),
        ("second.md", SECOND),
        ("nested.md", NESTED),
        ("links.md", LINKS),
        ("dot.svg", dot),
    ):
        (folder / name).write_text(text)
    tree = Tree(str(folder), name="book")
    made = []
    for name in ("first.md", "second.md", "nested.md", "links.md"):
        document = Document(f"book/{name}", name, "book", "markdown", (folder / name).read_bytes(), tree=tree)
        made.append(compose(document, read(document)[0]))
        keep_images(home, made[-1], lambda address: find_image(tree, address))
    return made


@pytest.fixture(scope="module")
def server(pages: list[BookPage], home: Path, scripted: Scripted) -> Iterator[Served]:
    with scripted_server(Shelf(pages), scripted, chapterverse_home=home) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Served, pages: list[BookPage]) -> Iterator[Page]:
    with visiting(browser, server.url, f"/read/{pages[0].page_id}") as opened:
        opened.locator("main h1").wait_for()
        yield opened


def test_markup_of_the_source_is_rendered(page: Page) -> None:
    first = page.locator("main > p").first
    assert first.locator("em").all_text_contents() == ["slanted"]
    assert first.locator("strong").all_text_contents() == ["strong"]
    assert first.locator("sub").all_text_contents() == ["2"]
    assert first.locator("code").all_text_contents() == ["code", "second"]
    assert first.locator(".math").all_text_contents() == ["x_1 = \\frac{a}{b}", "n"]
    assert "$" not in (first.text_content() or "")
    assert first.locator("sup.footnote").all_text_contents() == ["n"]
    expect(page.locator(".aside.tone-danger .label")).to_have_text("Danger")
    titled = page.locator(".aside.tone-tip")
    assert titled.locator("p").all_text_contents() == ["Is this a title?", "It is."]
    expect(titled.locator(".label code")).to_have_text("this")
    expect(page.locator("figure > figcaption strong")).to_have_text("captioned")
    expect(page.locator("table > caption")).to_have_text("The sizes")
    assert page.locator(".aside.tone-danger li").all_text_contents() == ["hot", "sharp"]
    expect(page.locator("ol > li").first.locator("ul > li > em")).to_have_text("one")
    assert page.locator("td").all_text_contents() == ["XL", "a | b", "c", "words", "d"]
    expect(page.locator("dl.definition dt code")).to_have_text("Term")
    expect(page.locator("dl.definition dd em")).to_have_text("means")
    expect(page.locator(".code .caption")).to_have_text("main.py")
    expect(page.locator(".code .language")).to_have_text("python")
    expect(page.locator("blockquote strong")).to_have_text("so")
    shoot(page, "30-everything")


def test_nested_blocks_are_rendered_inside_their_list_or_admonition(
    page: Page, pages: list[BookPage], server: Served
) -> None:
    page.goto(f"{server.url}/read/{pages[2].page_id}")
    expect(page.locator("main h1")).to_have_text("Nested")
    expect(page.locator(".page > ol")).to_have_count(1)
    steps = page.locator(".page > ol > li")
    assert [step.evaluate("item => item.value") for step in steps.all()] == [1, 2]
    assert steps.first.locator("> .code code").all_text_contents() == ["make"]
    expect(steps.first.locator("> p")).to_have_text("Wait.")
    expect(steps.first.locator("> ul > li")).to_have_count(2)
    assert steps.first.locator("> ul > li").first.locator("code").all_text_contents() == ["sleep 1"]
    note = page.locator(".page > .aside")
    expect(note.locator(".label")).to_have_text("Note")
    assert note.locator("code").all_text_contents() == ["first"]
    expect(note.locator("> p").last).to_have_text("And then.")
    assert note.locator("td").all_text_contents() == ["1", "2"]
    expect(page.locator(".page > p").last).to_have_text("After.")
    expect(page.locator(".page > ul > li")).to_have_text("A list of its own.")
    shoot(page, "31-nested")


def test_links_inside_the_book_are_opened_in_place(page: Page, pages: list[BookPage]) -> None:
    links = page.locator("main > p").first.locator("a")
    assert links.all_text_contents() == ["the second page", "elsewhere"]  # a javascript: address is no link
    expect(links.nth(1)).to_have_attribute("target", "_blank")
    expect(links.nth(1)).to_have_attribute("rel", "noopener")
    links.first.click()
    expect(page.locator("main h1")).to_have_text("Second")
    expect(page.locator("#book-part-two")).to_be_focused()
    assert page.url.endswith(f"/read/{pages[1].page_id}#book-part-two")
    page.locator("main p a").last.click()
    expect(page.locator("main h1")).to_have_text("Everything 🤖")


def test_images_of_the_book_are_shown_and_others_are_links(page: Page) -> None:
    shown = page.locator("main img")
    expect(shown).to_have_count(4)
    expect(page.locator("main td img")).to_have_attribute("alt", "in a cell")
    for number in range(4):
        assert shown.nth(number).evaluate("image => image.decode().then(() => image.naturalWidth)") == 20
    expect(page.locator("main figure img").first).to_have_attribute("alt", "A drawing")
    expect(page.locator("main figure a .picture")).to_have_text("Of another site")  # `visiting` fails on a request


def test_heading_with_an_id_of_the_page_gets_a_prefix(page: Page) -> None:
    expect(page.locator("#book-cv-ask")).to_have_text("cv-ask")
    expect(page.locator("#cv-ask")).to_have_class("ask-place needs-script")


def test_evidence_is_marked_across_emphasis(page: Page, pages: list[BookPage], server: Served) -> None:
    text = pages[0].text
    start, end = text.index("slanted"), text.index("strong word") + len("strong word")
    page.goto(f"{server.url}/read/{pages[0].page_id}?quote={start}-{end}")
    expect(page.locator("mark.evidence").first).to_be_visible()
    assert "".join(page.locator("mark.evidence").all_text_contents()) == "slanted and strong word"


@pytest.mark.parametrize("scripted_page", [True, False])
def test_odd_addresses_and_encoded_anchors_are_links(
    browser: Browser, server: Served, pages: list[BookPage], scripted_page: bool
) -> None:
    address = f"/read/{pages[3].page_id}"
    with visiting(browser, server.url, address, java_script_enabled=scripted_page) as page:
        if scripted_page:
            page.locator("main .headed").first.wait_for()
        links = page.locator("main > p").first.locator("a")
        opened = [(link.text_content(), link.get_attribute("target")) for link in links.all()]
        assert opened == [("to a port", "_blank"), ("below", None), ("out", "_blank")]
        below = links.nth(1).get_attribute("href") or ""
        assert below.partition("#")[2] == "book-%C3%BCber-uns"
        assert page.locator("main h2").get_attribute("id") == "book-über-uns"
