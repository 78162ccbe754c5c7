"""The page and its files, as they are served and as they are written."""

import gzip
import json
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from chapterverse.api.web import ASSETS, PAGE, asset_path, joined, version
from chapterverse.api.widget import FILES
from chapterverse.book import Page
from chapterverse.config import Settings
from chapterverse.errors import ChapterverseError, CollectionNotFoundError
from tests.browser.shelf import Shelf
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

WEB = files("chapterverse").joinpath("web")
SOURCES = {name: WEB.joinpath(name).read_text("utf-8") for name in (PAGE, *ASSETS, *FILES)}
SCRIPTS = sorted(name for name in SOURCES if name.endswith(".js"))
LONGEST = 400  # lines, as for every file
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:const|let|class|function\*?) (\w+)", re.MULTILINE)
FIRST = re.compile(r'<script type="application/json" id="cv-first">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    settings = Settings.load(api_keys="key", api_rate_limit=1)  # neither stands before the page
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        yield server


@pytest.mark.slow
def test_every_file_is_served_as_what_it_is(server: Served) -> None:
    types = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    page = SOURCES[PAGE].replace('"assets/', f'"{asset_path("")}')
    for name in (PAGE, *ASSETS):
        answer = server.http.get("/" if name == PAGE else asset_path(name))
        assert answer.status_code == 200
        assert answer.text == (page if name == PAGE else joined(name))
        assert answer.headers["content-type"].split(";")[0] == types[name.rpartition(".")[2]]
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline(server: Served) -> None:
    policy = dict(rule.split(" ", 1) for rule in server.http.get("/").headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "caching"),
    [
        ("/", "no-cache"),
        (asset_path("reader.js"), "public, max-age=31536000, immutable"),
        ("/assets/of-another-release/reader.js", "no-store"),
    ],
)
def test_how_long_a_browser_keeps_it(server: Served, path: str, caching: str) -> None:
    first = server.http.get(path, headers={"Accept-Encoding": "identity"})
    assert first.headers["cache-control"] == caching
    assert "content-encoding" not in first.headers
    again = server.http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert server.http.get(path, headers={"If-None-Match": 'W/"other"'}).status_code == 200
    assert server.http.get(path, headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nothing.js", "index.html", "..%2Fconfig.py", "%2e%2e%2fmain.py", ""])
def test_nothing_else_is_served(server: Served, name: str) -> None:
    for folder in ("/assets", f"/assets/{version()}"):
        answer = server.http.get(f"{folder}/{name}")
        assert answer.status_code == 404
        assert answer.json()["error_code"] == "not_found"


def first_of(shelf: Shelf, **settings: str) -> str:
    with serve(Settings.load(**settings), opening=without_engines(index=shelf), answering=Scripted()) as server:
        found = FIRST.search(server.http.get("/").text)
        assert found
        return found[1]


@pytest.mark.slow
def test_the_page_brings_its_table_of_contents() -> None:
    title = '</script><!--<script> & "quoted" \u2028 שלום'
    text = first_of(Shelf([Page("id", "a.md", title, "one", "source", "text", (), ())]))
    assert "<" not in text
    assert json.loads(text) == {"pages": [{"page_id": "id", "title": title, "module": "one", "url": "a.md"}]}


@pytest.mark.slow
@pytest.mark.parametrize("failure", [CollectionNotFoundError("There is no book yet."), None])
def test_without_it_the_page_is_served_all_the_same(failure: ChapterverseError | None) -> None:
    """A book that cannot be opened, and one whose engine hangs."""
    assert first_of(Shelf(failure=failure, hangs=failure is None)) == "null"


@pytest.mark.slow
def test_what_a_key_protects_is_not_in_the_page() -> None:
    shelf = Shelf([Page("id", "a.md", "Secret", "one", "source", "text", (), ())])
    assert first_of(shelf, api_keys="key") == "null"


def test_every_file_of_the_folder_is_listed() -> None:
    assert {entry.name for entry in WEB.iterdir() if entry.is_file()} == set(SOURCES)


def test_all_together_stay_small() -> None:
    assert sum(len(gzip.compress(source.encode())) for source in SOURCES.values()) < 60_000


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_is_inline_and_nothing_from_elsewhere(name: str) -> None:
    source = SOURCES[name]
    if name == PAGE:
        written = FIRST.sub("", source)  # data
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", written)
        loaded = re.findall(r"<(?:script|link)[^>]*?(?:src|href)=\"([^\"]+)\"", source)
        assert set(loaded) <= {f"assets/{asset}" for asset in ASSETS}
    else:
        assert not re.search(r"@import(?! \"\./)|url\(", source)
    foreign = re.findall(r"https?://(?!www\.w3\.org/2000/svg|docs\.example\.com)[\w.]+", source)
    assert foreign == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_never_becomes_markup_or_program(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|srcdoc"
    )
    assert not re.search(forbidden, SOURCES[name])
    assert len(SOURCES[name].splitlines()) <= LONGEST


@pytest.mark.parametrize("name", ASSETS)
def test_a_file_comes_with_all_it_imports(name: str) -> None:
    whole = joined(name)
    assert not re.search(r"^@?import\b", whole, re.MULTILINE)
    declared = DECLARED.findall(whole)
    assert len(declared) == len(set(declared)), "joined, they share one scope"
    assert set(DECLARED.findall(SOURCES[name])) <= set(declared)
    assert re.findall(r"^export ", whole, re.MULTILINE) == re.findall(r"^export ", SOURCES[name], re.MULTILINE)
