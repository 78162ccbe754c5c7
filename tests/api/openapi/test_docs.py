"""The Swagger page: it loads only files of this server, and its content security policy allows no others."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.settings import Settings
from tests.scripted import without_engines
from tests.served import Served, serve


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home: Path = tmp_path_factory.mktemp("home")
    with serve(Settings.load(chapterverse_home=home), opening=without_engines()) as served:
        yield served


def test_page_loads_only_files_of_this_server(server: Served) -> None:
    page = server.http.get("/docs")
    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "//" not in re.sub(r"<!--.*?-->", "", page.text)
    for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        answer = server.http.get(f"/{address}")
        assert answer.status_code == 200, address
        assert answer.content
    assert server.http.get("/redoc").status_code == 404
    assert server.http.get("/docs/LICENSE").status_code == 404


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_files_are_sent_compressed_if_the_client_accepts_it(server: Served, encoding: str) -> None:
    answer = server.http.get("/docs/swagger-ui-bundle.js", headers={"Accept-Encoding": encoding})
    assert answer.headers.get("content-encoding", "identity") == encoding
    assert "SwaggerUIBundle" in answer.text
