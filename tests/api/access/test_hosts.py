"""Which names the server answers to, so that no website can read a local server through a reader's browser."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from chapterverse.api.access.hosts import name_of
from chapterverse.errors import ConfigurationError
from chapterverse.main import create_app
from chapterverse.settings import Settings
from tests.scripted import without_engines
from tests.served import serve


async def status(
    host: str, server: str = "127.0.0.1", client: str = "127.0.0.1", path: str = "/pages", **kw: Any
) -> int:
    """The status of a request that reached an address of this server under some name."""
    app = create_app(Settings.load(**kw), opening=without_engines())
    seen: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            seen.append(message["status"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"},
        **{"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "state": {}},
        **{"headers": [(b"host", host.encode())] if host else [], "server": (server, 8000), "client": (client, 5)},
    }
    await app(scope, receive, send)
    return seen[0]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.example"]
)
async def test_a_website_that_resolves_to_this_machine_is_refused(host: str) -> None:
    assert await status(host, path="/nowhere") == 400
    assert await status(host, server="::1", path="/nowhere") == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "book.localhost", ""])
async def test_names_of_this_machine_are_served(host: str) -> None:
    assert await status(host, path="/nowhere") == 404


async def test_other_addresses_trusted_proxies_and_probes_are_not_affected() -> None:
    assert await status("docs.example", server="10.0.0.7", path="/nowhere") == 404
    assert await status("docs.example", trusted_proxies="127.0.0.1", path="/nowhere") == 404
    assert await status("docs.example", path="/livez") == 200


async def test_the_setting_decides_everywhere() -> None:
    named: dict[str, Any] = {"allowed_hosts": "docs.example, *.book.example", "path": "/nowhere"}
    for host, wanted in (("docs.example", 404), ("a.book.example", 404), ("book.example", 400), ("evil.example", 400)):
        assert await status(host, server="10.0.0.7", **named) == wanted
    assert await status("anything.example", allowed_hosts="*", path="/nowhere") == 404
    with pytest.raises(ConfigurationError, match="ALLOWED_HOSTS"):
        Settings.load(allowed_hosts="https://docs.example")


def test_names() -> None:
    assert [name_of(host) for host in ("A.b:80", "[::1]:8", "a.", "")] == ["a.b", "::1", "a", ""]


@pytest.mark.slow
def test_over_a_real_socket(tmp_path: Path) -> None:
    with serve(Settings.load(chapterverse_home=tmp_path), opening=without_engines()) as served:
        assert served.http.get("/openapi.json").status_code == 200
        answer = served.http.get("/openapi.json", headers={"Host": "evil.example"})
        assert (answer.status_code, answer.json()["error_code"]) == (400, "validation_error")
        assert isinstance(answer, httpx2.Response)
