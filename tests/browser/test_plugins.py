"""The plug-ins on new sites, configured as their READMEs say: tags and look of the built pages."""

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import shoot, visiting
from tests.browser.generators import PLUGINS, build_fresh
from tests.browser.hosts import Host, hosting
from tests.browser.shelf import Shelf, scripted_server
from tests.browser.test_widget import ask, computed, launcher
from tests.scripted import Scripted
from tests.served import Served

# A generator may have to be installed first.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GENERATORS = ["mkdocs", "sphinx", "docusaurus"]
SOURCE = "http://chapterverse.test/widget.js"
OPTIONS: dict[str, Any] = {
    "title": 'Ask "Ada" & co',
    "accent": "#b3005e",
    "font": "Georgia, serif",
    "logo": "/logo.svg",
    "suggestions": ["What is <new>?", "Why?"],
    "module": "guide",
    "book": "guide",
    "version": "2.1",
    "prefix": "/",
    "theme": "dark",
    "position": "left",
    "target": "#ask",
}
WRITTEN = {f"data-{name}": "|".join(value) if isinstance(value, list) else value for name, value in OPTIONS.items()}
DARK = {
    "mkdocs": "document.body.setAttribute('data-md-color-scheme', 'slate')",
    "sphinx": "document.body.dataset.theme = 'dark'",
    "docusaurus": "document.documentElement.dataset.theme = 'dark'",
}


class Scripts(HTMLParser):
    """The attributes of the widget's tags in a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script" and (dict(attrs).get("src") or "").startswith("http://chapterverse.test/"):
            self.found.append(dict(attrs))


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_page_has_the_widget_once_with_its_options(generator: str, tmp_path: Path) -> None:
    site = build_fresh(generator, tmp_path, OPTIONS)
    pages = list(site.rglob("*.html"))
    assert len(pages) >= 3  # two of the site, and one of the generator
    for page in pages:
        (attributes,) = Scripts(page).found
        assert attributes.pop("src") == SOURCE
        assert "async" in attributes
        assert {name: value for name, value in attributes.items() if name != "async"} == WRITTEN


@pytest.mark.parametrize(
    ("generator", "options", "message"),
    [
        ("mkdocs", {"server": "ask.example.com"}, "option 'server'"),
        ("mkdocs", {"theme": "blue"}, "option 'theme'"),
        ("mkdocs", {"colour": "red"}, "option 'colour'"),
        ("sphinx", {"server": ""}, "chapterverse_server must be the address of a server"),
        ("sphinx", {"theme": "blue"}, "chapterverse_theme must be one of auto, light, dark"),
        ("sphinx", {"suggestions": "Why?"}, "chapterverse_suggestions"),
    ],
)
def test_invalid_option_stops_the_build(generator: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=message):
        build_fresh(generator, tmp_path, options)


def test_epub_has_no_widget(tmp_path: Path) -> None:
    site = build_fresh("sphinx", tmp_path, {"title": "Ask"}, builder="epub")
    with zipfile.ZipFile(next(site.glob("*.epub"))) as book:
        assert not any(b"widget.js" in book.read(name) for name in book.namelist())


NODE = """
const plugin = require(process.argv[1]);
const tried = JSON.parse(process.argv[2]).map((options) => {
  try {
    return plugin({}, plugin.validateOptions({ options: { id: "default", ...options } })).injectHtmlTags().headTags;
  } catch (failure) {
    return failure.message;
  }
});
console.log(JSON.stringify(tried));
"""


def test_docusaurus_plugin_validates_its_options() -> None:
    """Calls the plug-in with node as Docusaurus does. Docusaurus itself is installed by `make test-docusaurus`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on PATH")
    server = {"server": "http://chapterverse.test/"}
    wrong: list[dict[str, Any]] = [{}, {"server": "https://"}, {"server": "http://chapterverse.test/?x=1"}]
    wrong += [server | {"theme": "blue"}, server | {"colour": "red"}]
    wrong += [server | {"suggestions": "Why?"}, server | {"suggestions": ["a || b?"]}]
    tried = json.dumps([server | OPTIONS, server, *wrong])
    command = [node, "-e", NODE, str(PLUGINS / "docusaurus-plugin-chapterverse"), tried]
    full, bare, *messages = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert full == [{"tagName": "script", "attributes": {"src": SOURCE, "async": True} | WRITTEN}]
    assert bare == [{"tagName": "script", "attributes": {"src": SOURCE, "async": True}}]
    names = ("server", "server", "server", "theme", "colour", "suggestions", "suggestions")
    for message, name in zip(messages, names, strict=True):
        assert message.startswith("docusaurus-plugin-chapterverse: ") and f'"{name}"' in message


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_plugin_option_is_documented(generator: str) -> None:
    (readme,) = PLUGINS.glob(f"*{generator}*/README.md")
    named = re.findall(r"^\| `(?:chapterverse_)?(\w+)` \|", readme.read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted([*OPTIONS, "server"])


def test_plugin_packages_have_the_version_of_chapterverse() -> None:
    root = (PLUGINS.parent / "pyproject.toml").read_text("utf-8")
    version = re.search(r'^version = "(.+)"$', root, re.MULTILINE)
    assert version
    for name in ("mkdocs-chapterverse", "sphinx-chapterverse"):
        assert f'\nversion = "{version[1]}"\n' in (PLUGINS / name / "pyproject.toml").read_text("utf-8")
    package = json.loads((PLUGINS / "docusaurus-plugin-chapterverse" / "package.json").read_text("utf-8"))
    assert package["version"] == version[1]


# ── in a browser ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module", params=GENERATORS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Host]]:
    with hosting(build_fresh(request.param, tmp_path_factory.mktemp(request.param))) as host:
        yield request.param, host


@pytest.fixture
def server(site: tuple[str, Host], scripted: Scripted) -> Iterator[Served]:
    with scripted_server(Shelf(), scripted, api_rate_limit=100_000, cors_origins=site[1].url) as server:
        site[1].chapterverse = server.url
        yield server


def looks_native(page: Page) -> None:
    """Font, link colour and background equal those of the site. Links get more contrast if it is too low."""
    content, link = page.locator("article").first, page.locator("article a[href*=page]").first
    assert computed(page, ".panel", "fontFamily") == content.evaluate("node => getComputedStyle(node).fontFamily")
    paper = computed(page, ".panel", "backgroundColor")
    assert paper == page.evaluate(BEHIND)
    inside, outside = computed(page, ".chip", "color"), link.evaluate("node => getComputedStyle(node).color")
    if contrast(outside, paper) >= 4.5:
        assert inside == outside
    else:
        assert contrast(inside, paper) >= 4.5 and contrast(inside, outside) < 1.5


BEHIND = """() => {
    for (let node = document.querySelector("chapterverse-widget").parentElement; node; node = node.parentElement) {
        const colour = getComputedStyle(node).backgroundColor;
        if (!/, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
}"""


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG, from 1 to 21."""

    def luminance(colour: str) -> float:
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.browser
def test_widget_has_the_look_of_the_site_in_light_and_dark(
    browser: Browser, site: tuple[str, Host], server: Served
) -> None:
    generator, host = site
    view = {"width": 1400, "height": 800}
    with visiting(browser, host.url, asks=server.url, viewport=view, color_scheme="light") as page:
        ask(page, "answer")
        page.locator(".sources").wait_for()
        expect(page.locator(".widget")).to_have_attribute("data-theme", "light")
        looks_native(page)
        shoot(page, f"60-plugin-{generator}-light")
        page.evaluate(DARK[generator])
        expect(page.locator(".widget")).to_have_attribute("data-theme", "dark")
        expect(launcher(page)).to_be_hidden()
        looks_native(page)
        shoot(page, f"61-plugin-{generator}-dark")
