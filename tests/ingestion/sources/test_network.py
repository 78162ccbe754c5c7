import asyncio
import ipaddress
import socket
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.ingestion.sources.network import RefusedAddress, guarded_client, judge
from tests.ingestion.sources.site import Website, website


def client(*, allow_private: bool = False) -> httpx2.AsyncClient:
    return guarded_client(allow_private=allow_private, user_agent="Test/1", connections=2)


def answer_names(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Makes every name resolve to these addresses; returns the list of resolved names, which grows."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in addresses
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize(
    ("address", "verdict"),
    [
        ("93.184.215.14", "public"),
        ("8.8.8.8", "public"),
        ("172.32.0.1", "public"),
        ("2606:4700::6810:84e5", "public"),
        ("127.0.0.1", "private"),
        ("127.255.255.254", "private"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("100.127.255.255", "private"),
        ("::1", "private"),
        ("fc00::1", "private"),
        ("fd12:3456::1", "private"),
        ("169.254.169.254", "special"),  # metadata service of cloud providers
        ("169.254.0.1", "special"),
        ("0.0.0.0", "special"),
        ("0.1.2.3", "special"),
        ("192.0.0.8", "special"),
        ("192.0.2.1", "special"),
        ("192.88.99.1", "special"),
        ("198.18.0.1", "special"),
        ("224.0.0.1", "special"),
        ("233.252.0.1", "special"),
        ("240.0.0.1", "special"),
        ("255.255.255.255", "special"),
        ("::", "special"),
        ("fe80::1", "special"),
        ("fe80::1%eth0", "special"),
        ("fec0::1", "special"),
        ("ff02::1", "special"),
        ("100::1", "special"),
        ("2001:db8::1", "special"),
        ("3fff::1", "special"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "special"),  # Teredo
        ("64:ff9b:1::7f00:1", "special"),  # local NAT64
        ("::7f00:1", "special"),  # IPv4-compatible, deprecated
        # With an embedded IPv4 address, which decides.
        ("::ffff:127.0.0.1", "private"),
        ("::ffff:169.254.169.254", "special"),
        ("::ffff:8.8.8.8", "public"),
        ("2002:7f00:1::", "private"),
        ("2002:c0a8:101::1", "private"),
        ("2002:808:808::1", "public"),
        ("64:ff9b::7f00:1", "private"),
        ("64:ff9b::a9fe:a9fe", "special"),
        ("64:ff9b::808:808", "public"),
    ],
)
def test_addresses_are_classified(address: str, verdict: str) -> None:
    assert judge(ipaddress.ip_address(address)) == verdict


@given(st.ip_addresses(v=4))
def test_ipv4_address_embedded_in_ipv6_is_classified_alike(address: ipaddress.IPv4Address) -> None:
    wrapped = [
        ipaddress.IPv6Address(f"::ffff:{address}"),
        ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80)),
        ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | int(address)),
    ]
    assert {judge(address)} == {judge(inside) for inside in wrapped}


@given(st.ip_addresses())
def test_private_loopback_and_multicast_addresses_are_not_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        embedded = isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.sixtofour)
        assert embedded or judge(address) != "public"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]"]
)
async def test_loopback_is_refused_in_every_notation(host: str) -> None:
    async with website() as site, client() as guarded:
        with pytest.raises(RefusedAddress, match="private address; use --allow-private"):
            await guarded.get(f"http://{host}:{site.port}/")
        assert site.requests == []
        assert site.connections == set()


async def test_loopback_is_read_with_allow_private() -> None:
    async with website() as site, client(allow_private=True) as guarded:
        site.text("/", "hello")
        assert (await guarded.get(f"{site.origin}/")).text == "hello"


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "fe80::1", "::ffff:169.254.169.254"])
async def test_special_addresses_are_refused_even_with_allow_private(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    answer_names(monkeypatch, address)
    async with client(allow_private=True) as guarded:
        with pytest.raises(RefusedAddress, match=r"metadata\.example \(.*\) is not an address of a website"):
            await guarded.get("http://metadata.example/latest/")


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:7f00:1"]])
async def test_a_public_name_with_a_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    asked = answer_names(monkeypatch, *addresses)
    async with website() as site, client() as guarded:
        with pytest.raises(RefusedAddress, match=r"book\.example"):
            await guarded.get(f"http://book.example:{site.port}/")
        assert site.connections == set()
    assert asked == ["book.example"]


async def test_connection_uses_the_checked_address_and_keeps_the_host_header(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer_names(monkeypatch, "127.0.0.1")
    async with website() as site, client(allow_private=True) as guarded:
        site.text("/", "hello")
        for _ in range(2):
            assert (await guarded.get(f"http://book.example:{site.port}/")).text == "hello"
        assert {request.headers["host"] for request in site.requests} == {f"book.example:{site.port}"}
    assert asked == ["book.example"]  # resolved once, so DNS rebinding is impossible


async def test_next_address_is_tried_if_one_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, "127.0.0.2", "127.0.0.1")  # the site listens on the second only
    async with website() as site, client(allow_private=True) as guarded:
        site.text("/", "hello")
        assert (await guarded.get(f"http://book.example:{site.port}/")).text == "hello"


async def test_tls_uses_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    hello: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello.set_result(await reader.read(4096))
        writer.close()

    answer_names(monkeypatch, "127.0.0.1")
    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server, client(allow_private=True) as guarded:
        with pytest.raises(httpx2.ConnectError):
            await guarded.get(f"https://book.example:{server.sockets[0].getsockname()[1]}/")
    assert b"book.example" in await hello


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with website() as site, website() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.origin)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        site.text("/", "hello")
        async with client(allow_private=True) as guarded:
            assert (await guarded.get(f"{site.origin}/")).text == "hello"
        assert proxy.requests == []


async def test_redirects_are_not_followed() -> None:
    async with website() as site, client(allow_private=True) as guarded:
        site.redirect("/", "http://169.254.169.254/")
        assert (await guarded.get(f"{site.origin}/")).status_code == 301


async def test_unknown_host_and_scheme_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    async with client() as guarded:
        with pytest.raises(httpx2.ConnectError, match=r"no host named nowhere\.example"):
            await guarded.get("http://nowhere.example/")
        with pytest.raises(httpx2.UnsupportedProtocol):
            await guarded.get("ftp://nowhere.example/")


async def test_hanging_resolver_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    async with client() as guarded:
        with pytest.raises(httpx2.ConnectTimeout):
            await guarded.get("http://slow.example/", timeout=0.05)


async def test_closing_the_client_closes_its_connections() -> None:
    async with website() as site:
        site.text("/", "hello")
        async with client(allow_private=True) as guarded:
            await guarded.get(f"{site.origin}/")
            assert _open(site) == 1
        await asyncio.wait_for(site.idle.wait(), 5)
        assert _open(site) == 0


def _open(site: Website) -> int:
    return len(site.connections)
