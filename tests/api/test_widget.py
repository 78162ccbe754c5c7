"""`/widget.js` as it is served: one small script that any site can load."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.settings import Settings
from tests.api.test_web import DECLARED, SOURCES, imported_by
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "widget.md").read_text("utf-8")
SITES = ROOT / "tests" / "browser" / "sites"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    settings = Settings.load(api_keys="key", api_rate_limit=1)  # neither a key nor the rate limit applies to the script
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        yield server


def test_widget_is_one_script_that_any_site_can_load(server: Served) -> None:
    answer = server.http.get("/widget.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "max-age=300" in answer.headers["cache-control"]
    assert server.http.get("/widget.js", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    script = answer.text
    assert script.startswith('"use strict";(() => {\n') and script.endswith("})();\n")
    assert not re.search(r"^(?:import|export) |the styles are put here", script, re.MULTILINE)
    declared = [each for part in imported_by("widget.js") for each in DECLARED.findall(SOURCES[part])]
    assert "Widget" in declared and len(declared) == len(set(declared)), "joined files share one scope"
    assert set(declared) <= set(DECLARED.findall(script))
    for name in ("ink.css", "ask.css", "widget.css"):
        assert SOURCES[name].splitlines()[-1].replace('"', '\\"') in script


def test_widget_is_valid_javascript(server: Served, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on PATH; the browser tests run the script in any case")
    script = tmp_path / "widget.js"
    script.write_text(server.http.get("/widget.js").text, "utf-8")
    assert subprocess.run([node, "--check", str(script)], check=False).returncode == 0


def test_widget_is_below_30_kb_compressed(server: Served) -> None:
    with server.http.stream("GET", "/widget.js", headers={"Accept-Encoding": "gzip"}) as answer:
        assert sum(map(len, answer.iter_raw())) < 30_000
        assert answer.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        ("mkdocs/overrides/main.html", "{% extends"),
        ("sphinx/conf.py", "html_js_files"),
        ("docusaurus/docusaurus.config.js", "  scripts: ["),
    ],
)
def test_documented_snippets_are_the_tested_ones(path: str, begins: str) -> None:
    written = (SITES / path).read_text("utf-8").replace("http://chapterverse.test", "https://ask.example.com")
    snippet = next(block for block in GUIDE.split("```") if block.partition("\n")[2].startswith(begins))
    assert snippet.partition("\n")[2] in written


def test_every_widget_attribute_is_documented() -> None:
    taken = re.search(r"constructor\(\{(.+)\}\) \{", SOURCES["widget.js"])
    assert taken
    attributes = {part.split("=")[0].strip() for part in taken[1].split(",")}
    assert attributes == set(re.findall(r"^\| `data-(\w+)` \|", GUIDE, re.MULTILINE))
