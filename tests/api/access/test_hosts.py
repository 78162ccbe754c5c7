"""The check of the Host header, which protects a local server from DNS rebinding through a user's browser."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from chapterverse.api.access.hosts import ForwardedScheme, name_of
from chapterverse.errors import ConfigurationError
from chapterverse.main import create_app
from chapterverse.settings import Settings
from tests.scripted import without_engines
from tests.served import serve


async def status(
    host: str, server: str = "127.0.0.1", client: str = "127.0.0.1", path: str = "/pages", **kw: Any
) -> int:
    """Sends a request with this Host header to this address of the server; returns the status."""
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
async def test_foreign_host_on_a_loopback_address_returns_400(host: str) -> None:
    assert await status(host, path="/nowhere") == 400
    assert await status(host, server="::1", path="/nowhere") == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "book.localhost", ""])
async def test_local_host_names_are_accepted(host: str) -> None:
    assert await status(host, path="/nowhere") == 404


async def test_hosts_are_not_checked_for_other_addresses_trusted_proxies_and_probes() -> None:
    assert await status("docs.example", server="10.0.0.7", path="/nowhere") == 404
    assert await status("docs.example", trusted_proxies="127.0.0.1", path="/nowhere") == 404
    assert await status("docs.example", path="/livez") == 200


async def test_ipv4_address_on_a_dual_stack_socket_is_the_same_address() -> None:
    mapped = {"server": "::ffff:127.0.0.1", "client": "::ffff:127.0.0.1", "path": "/nowhere"}
    assert await status("evil.example", **mapped) == 400
    assert await status("docs.example", trusted_proxies="127.0.0.1", **mapped) == 404


async def test_allowed_hosts_setting_applies_to_every_address() -> None:
    named: dict[str, Any] = {"allowed_hosts": "docs.example, *.book.example", "path": "/nowhere"}
    for host, wanted in (("docs.example", 404), ("a.book.example", 404), ("book.example", 400), ("evil.example", 400)):
        assert await status(host, server="10.0.0.7", **named) == wanted
    assert await status("anything.example", allowed_hosts="*", path="/nowhere") == 404
    with pytest.raises(ConfigurationError, match="ALLOWED_HOSTS"):
        Settings.load(allowed_hosts="https://docs.example")


def test_name_of_strips_port_brackets_and_final_dot() -> None:
    assert [name_of(host) for host in ("A.b:80", "[::1]:8", "a.", "")] == ["a.b", "::1", "a", ""]


@pytest.mark.slow
def test_foreign_host_returns_400_over_a_real_socket(tmp_path: Path) -> None:
    with serve(Settings.load(chapterverse_home=tmp_path), opening=without_engines()) as served:
        assert served.http.get("/openapi.json").status_code == 200
        answer = served.http.get("/openapi.json", headers={"Host": "evil.example"})
        assert (answer.status_code, answer.json()["error_code"]) == (400, "validation_error")
        assert isinstance(answer, httpx2.Response)


@pytest.mark.slow
def test_reader_behind_a_trusted_proxy_on_this_machine_is_served(tmp_path: Path) -> None:
    """uvicorn, too, can read the headers of proxies. Then the address of the proxy is not known any more."""
    forwarded = {"Host": "docs.example", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    settings = Settings.load(chapterverse_home=tmp_path, trusted_proxies="127.0.0.1")
    with serve(settings, opening=without_engines()) as served:
        assert served.http.get("/openapi.json", headers=forwarded).status_code == 200


@pytest.mark.parametrize(
    ("client", "claimed", "scheme"),
    [
        ("10.0.0.1", "https", "https"),
        ("10.0.0.1", "http", "http"),
        ("10.0.0.1", "javascript", "http"),
        ("10.0.0.1", "", "http"),
        ("10.0.0.2", "https", "http"),
    ],
)
async def test_scheme_is_taken_only_from_a_trusted_proxy(client: str, claimed: str, scheme: str) -> None:
    seen: list[str] = []

    async def app(scope: Any, _: object, __: object) -> None:
        seen.append(scope["scheme"])

    scope: dict[str, Any] = {"type": "http", "scheme": "http", "client": (client, 5), "path": "/"}
    scope["headers"] = [(b"x-forwarded-proto", claimed.encode())] if claimed else []
    settings = Settings.load(trusted_proxies="10.0.0.1")
    await ForwardedScheme(app, settings)(scope, None, None)  # type: ignore[arg-type]
    assert seen == [scheme]
