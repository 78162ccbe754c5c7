"""An HTTP client that connects only to allowed addresses.

It follows no redirects and uses no proxy or password from the environment.

The check is below HTTP, where the connection is opened: the name is resolved, all its addresses are checked, and the
connection is made to a checked address. So a name that resolves differently a moment later (DNS rebinding) does no
harm. TLS and the Host header still use the name.
"""

import asyncio
import socket
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal

import httpcore2
import httpx2

Address = IPv4Address | IPv6Address
Verdict = Literal["public", "private", "special"]

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 15.0


def _networks(*names: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(name) for name in names)


# Private networks: loopback, RFC 1918, carrier-grade NAT, unique local.
_PRIVATE = _networks(
    "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"
)
# Global by Python's older tables, but without websites: protocol assignments (with Teredo, which wraps an IPv4
# address), 6to4 relays, documentation.
_NO_SITES = _networks("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # all assigned public IPv6 addresses
_NAT64 = IPv6Network("64:ff9b::/96")


class RefusedAddress(Exception):
    """A connection was refused because of its address; the message is for people."""


def judge(address: Address) -> Verdict:
    """Whether an address is public, private or special. Special addresses have no websites: link-local (such as the
    metadata service of clouds), multicast, reserved, unspecified, documentation."""
    if isinstance(address, IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return judge(inner)
    if _within(address, _PRIVATE):
        return "private"
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "special"
    if not address.is_global or address.is_multicast or address.is_reserved or _within(address, _NO_SITES):
        return "special"
    return "public"


def guarded_client(*, allow_private: bool, user_agent: str, connections: int) -> httpx2.AsyncClient:
    """A client for public websites and, if allowed, for private networks. The caller must check and follow redirects. A
    request to a forbidden address raises `RefusedAddress`."""
    return httpx2.AsyncClient(
        transport=_GuardedTransport(allow_private=allow_private, connections=connections),
        headers={"User-Agent": user_agent},
        timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=False,
    )


async def resolve(host: str, port: int) -> Sequence[str]:
    """All IP addresses of a name. Unusual spellings of addresses (`127.1`, `2130706433`) are resolved, too."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[4][0]) for place in found))


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    """httpx2's transport with a pool that opens connections through the guard."""

    def __init__(self, *, allow_private: bool, connections: int) -> None:
        context = httpx2.create_ssl_context()
        super().__init__(verify=context)
        # httpx2 has no public way to set a network backend. If the attribute is removed, this line fails instead of
        # leaving an unguarded pool.
        assert isinstance(self._pool, httpcore2.AsyncConnectionPool)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=5.0,
            network_backend=_GuardedBackend(allow_private=allow_private),
        )


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections only to checked addresses."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the signature is httpcore's)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await resolve(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not resolved in time") from None
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError(f"there is no host named {host}") from None
        for address in addresses:
            self._check(host, address)
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    def _check(self, host: str, address: str) -> None:
        verdict = judge(ip_address(address))
        if verdict == "public" or (verdict == "private" and self._allow_private):
            return
        named = host if host == address else f"{host} ({address})"
        if verdict == "private":
            raise RefusedAddress(f"{named} is a private address; use --allow-private to read sites on your own network")
        raise RefusedAddress(f"{named} is not an address of a website")


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that is embedded in an IPv6 address: mapped, 6to4 or NAT64."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _within(address: Address, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
