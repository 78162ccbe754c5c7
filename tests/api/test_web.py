"""The web files of the reader page: how they are served, and rules for their sources."""

import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from chapterverse.api.reader_page import TEMPLATE
from chapterverse.api.web import ASSETS, RELEASED, asset_path, joined, version
from chapterverse.settings import Settings
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

WEB = files("chapterverse").joinpath("web")
WIDGET = ("fragments.js", "look.js", "widget.css", "widget.js")
SOURCES = {name: WEB.joinpath(name).read_text("utf-8") for name in (TEMPLATE, *ASSETS, *WIDGET)}
SCRIPTS = sorted(name for name in SOURCES if name.endswith(".js"))
LONGEST = 400  # lines, as for every file
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:const|let|class|function\*?) (\w+)", re.MULTILINE)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    settings = Settings.load(api_keys="key", api_rate_limit=1)  # neither a key nor the rate limit applies to the page
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        yield server


@pytest.mark.slow
def test_every_file_is_served_with_its_content_type(server: Served) -> None:
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "woff2": "font/woff2"}
    for name in (*ASSETS, *RELEASED):
        answer = server.http.get(asset_path(name))
        assert answer.status_code == 200
        written = joined(name).encode() if name in ASSETS else WEB.joinpath(RELEASED[name][0], name).read_bytes()
        assert answer.content == written
        assert answer.headers["content-type"].split(";")[0] == types[name.rpartition(".")[2]]
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
def test_accent_in_the_query_string_is_added_to_the_style_sheet(server: Served) -> None:
    path = asset_path("reader.css")
    assert server.http.get(f"{path}?accent=0a7f5b").text.endswith(":root { --brand: #0a7f5b; }\n")
    for other in ("red", "0a7f5", "0a7f5b;} body {", "0A7F5B%0A"):
        assert server.http.get(path, params={"accent": other}).text == joined("reader.css")


@pytest.mark.slow
def test_content_security_policy_allows_only_files_of_this_server(server: Served) -> None:
    policy = dict(rule.split(" ", 1) for rule in server.http.get("/").headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data: blob:",
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
def test_cache_headers_and_etags(server: Served, path: str, caching: str) -> None:
    first = server.http.get(path, headers={"Accept-Encoding": "identity"})
    assert first.headers["cache-control"] == caching
    assert "content-encoding" not in first.headers
    again = server.http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert server.http.get(path, headers={"If-None-Match": 'W/"other"'}).status_code == 200
    assert server.http.get(path, headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nothing.js", "index.html", "..%2Fsettings.py", "%2e%2e%2fmain.py", ""])
def test_unknown_asset_returns_404(server: Served, name: str) -> None:
    for folder in ("/assets", f"/assets/{version()}"):
        answer = server.http.get(f"{folder}/{name}")
        assert answer.status_code == 404
        assert answer.json()["error_code"] == "not_found"


def test_every_file_in_the_folder_is_listed() -> None:
    assert {entry.name for entry in WEB.iterdir() if entry.is_file()} == set(SOURCES)


@pytest.mark.parametrize("folder", ["fonts", "prism"])
def test_third_party_files_come_with_their_licence(folder: str) -> None:
    names = {entry.name for entry in WEB.joinpath(folder).iterdir()}
    assert "NOTICE" in names and any("LICENSE" in name for name in names)
    assert {name for name in names if name.endswith((".js", ".woff2"))} == {
        name for name, (where, _) in RELEASED.items() if where == folder
    }


@pytest.mark.parametrize("name", SOURCES)
def test_sources_have_no_inline_code_and_no_foreign_urls(name: str) -> None:
    source = SOURCES[name]
    if name == TEMPLATE:
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", source)
        loaded = re.findall(r"<(?:script|link)[^>]*?(?:src|href)=\"([^\"]+)\"", source)
        known = {f"{{{{assets}}}}{asset}" for asset in (*ASSETS, *RELEASED)}
        assert {address.replace("{{accent}}", "") for address in loaded} <= known | {"{{icon}}", "{{markdown}}"}
    else:
        assert not re.search(r"@import(?! \"\./)", source)
        assert set(re.findall(r"url\((.*?)\)", source)) <= {f'"{font}"' for font in RELEASED}
    foreign = re.findall(r"https?://(?!www\.w3\.org/2000/svg|docs\.example\.com)[\w.]+", source)
    assert foreign == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_do_not_use_html_or_code_from_strings(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|srcdoc"
    )
    assert not re.search(forbidden, SOURCES[name])
    assert len(SOURCES[name].splitlines()) <= LONGEST


def imported_by(name: str) -> set[str]:
    """A file and everything it imports, directly or not."""
    direct = re.findall(r"^(?:import .* from|@import) \"\./(.+)\";$", SOURCES[name], re.MULTILINE)
    return {name}.union(*(imported_by(one) for one in direct))


@pytest.mark.parametrize("name", ASSETS)
def test_joined_file_has_everything_it_imports(name: str) -> None:
    whole = joined(name)
    assert not re.search(r"^@?import\b", whole, re.MULTILINE)
    parts = imported_by(name)
    declared = [each for part in parts for each in DECLARED.findall(SOURCES[part])]
    assert len(declared) == len(set(declared)), "joined files share one scope"
    assert set(declared) <= set(DECLARED.findall(whole))
    assert re.findall(r"^export ", whole, re.MULTILINE) == re.findall(r"^export ", SOURCES[name], re.MULTILINE)


@pytest.mark.parametrize("name", ASSETS)
def test_joined_file_has_no_comments_and_no_indentation(name: str) -> None:
    if name.endswith((".js", ".css")):
        whole = joined(name)
        assert not re.search(r"^ |/\*|[;{}(,] // ", whole, re.MULTILINE)
        assert not re.search(r"(?:[=:,] |\w\()`[^`\n]*$", whole, re.MULTILINE), "no template string spans several lines"
