"""The page and its files, as they are served and as they are written."""

import gzip
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from chapterverse.api.web import ASSETS, PAGE
from chapterverse.config import Settings
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

WEB = files("chapterverse").joinpath("web")
SOURCES = {name: WEB.joinpath(name).read_text("utf-8") for name in (PAGE, *ASSETS)}
SCRIPTS = sorted(name for name in SOURCES if name.endswith(".js"))
LONGEST = 400  # lines, as for every file


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    settings = Settings.load(api_keys="key", api_rate_limit=1)  # neither stands before the page
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        yield server


@pytest.mark.slow
def test_every_file_is_served_as_what_it_is(server: Served) -> None:
    types = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for name, source in SOURCES.items():
        answer = server.http.get("/" if name == PAGE else f"/assets/{name}")
        assert answer.status_code == 200
        assert answer.text == source
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
def test_a_browser_that_has_it_is_told_so(server: Served) -> None:
    for path in ("/", "/assets/reader.js"):
        first = server.http.get(path, headers={"Accept-Encoding": "identity"})
        assert first.headers["cache-control"] == "no-cache"
        assert "content-encoding" not in first.headers
        again = server.http.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert server.http.get(path, headers={"If-None-Match": 'W/"other"'}).status_code == 200
        assert server.http.get(path, headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nothing.js", "index.html", "..%2Fconfig.py", "%2e%2e%2fmain.py", ""])
def test_nothing_else_is_served(server: Served, name: str) -> None:
    answer = server.http.get(f"/assets/{name}")
    assert answer.status_code == 404
    assert answer.json()["error_code"] == "not_found"


def test_every_file_of_the_folder_is_listed() -> None:
    assert {entry.name for entry in WEB.iterdir()} == set(SOURCES)


def test_all_together_stay_small() -> None:
    assert sum(len(gzip.compress(source.encode())) for source in SOURCES.values()) < 60_000


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_is_inline_and_nothing_from_elsewhere(name: str) -> None:
    source = SOURCES[name]
    if name == PAGE:
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", source)
        loaded = re.findall(r"<(?:script|link)[^>]*?(?:src|href)=\"([^\"]+)\"", source)
        assert set(loaded) <= {f"assets/{asset}" for asset in ASSETS}
    else:
        assert not re.search(r"@import|url\(", source)
    foreign = re.findall(r"https?://(?!www\.w3\.org/2000/svg|docs\.example\.com)[\w.]+", source)
    assert foreign == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_never_becomes_markup_or_program(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|srcdoc"
    )
    assert not re.search(forbidden, SOURCES[name])
    assert len(SOURCES[name].splitlines()) <= LONGEST


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_import_is_served(name: str) -> None:
    for imported in re.findall(r"from \"\./([^\"]+)\"", SOURCES[name]):
        assert imported in ASSETS
        assert f'rel="modulepreload" href="assets/{imported}"' in SOURCES[PAGE], "the page must not wait for it in turn"
