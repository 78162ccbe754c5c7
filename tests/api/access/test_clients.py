"""How a client is identified: by its address, behind trusted and untrusted proxies, and by its API key."""

import hashlib
from ipaddress import ip_network
from typing import Any

import pytest

from chapterverse.api.access.clients import Clients
from chapterverse.errors import Unauthorized

PROXIES = [ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")]


def scope(peer: str | None, *headers: tuple[str, str]) -> dict[str, Any]:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "client": (peer, 1) if peer else None, "headers": raw}


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),  # the header of an untrusted peer is ignored
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
        ("10.0.0.1", "203.0.113.5, 198.51.100.7", "198.51.100.7"),  # the left one was sent by the client
        ("10.0.0.1", "203.0.113.5, 198.51.100.7, 10.1.1.1", "198.51.100.7"),
        ("10.0.0.1", "10.2.2.2, 10.1.1.1", "10.2.2.2"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.7, nonsense", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("2001:db8::1", "[2a00:1:2:3:4:5:6:7]:443", "2a00:1:2:3::/64"),
        ("2a00:1:2:3::1", None, "2a00:1:2:3::/64"),
        ("2a00:1:2:3:ffff::2", None, "2a00:1:2:3::/64"),
        (None, "198.51.100.7", "local"),
    ],
)
def test_client_address_behind_trusted_and_untrusted_proxies(
    peer: str | None, forwarded: str | None, client: str
) -> None:
    headers = [("X-Forwarded-For", forwarded)] if forwarded is not None else []
    assert Clients(PROXIES).by_address(scope(peer, *headers)).name == client


def test_repeated_forwarded_for_headers_are_joined() -> None:
    headers = [("X-Forwarded-For", "203.0.113.5"), ("X-Forwarded-For", "198.51.100.7")]
    assert Clients(PROXIES).by_address(scope("10.0.0.1", *headers)).name == "198.51.100.7"


def test_key_identifies_the_client_in_either_header() -> None:
    clients = Clients(keys=["one", "zwei-ü"])
    first = clients.by_key(scope("192.0.2.1", ("Authorization", "Bearer one")))
    assert first is not None
    assert first.keyed
    assert "one" not in first.name
    assert clients.by_key(scope("192.0.2.9", ("X-API-Key", "one"))) == first
    assert clients.by_key(scope("192.0.2.1", ("authorization", "bearer  one "))) == first


def test_key_configured_by_digest_accepts_the_key_and_rejects_the_digest() -> None:
    digest = "sha256:" + hashlib.sha256(b"one").hexdigest()
    clients = Clients(keys=[digest])
    assert clients.by_key(scope("192.0.2.1", ("X-API-Key", "one"))) == Clients(keys=["one"]).by_key(
        scope("192.0.2.1", ("X-API-Key", "one"))
    )
    for wrong in (digest, digest.removeprefix("sha256:")):
        with pytest.raises(Unauthorized):
            clients.by_key(scope("192.0.2.1", ("X-API-Key", wrong)))


@pytest.mark.parametrize(
    "header",
    [None, ("Authorization", "one"), ("Authorization", "Basic one"), ("X-API-Key", "ONE"), ("X-API-Key", "")],
)
def test_missing_or_wrong_key_raises_unauthorized(header: tuple[str, str] | None) -> None:
    with pytest.raises(Unauthorized):
        Clients(keys=["one"]).by_key(scope("192.0.2.1", *([header] if header else [])))


def test_no_configured_keys_accepts_every_request() -> None:
    assert Clients().by_key(scope("192.0.2.1", ("X-API-Key", "anything"))) is None
