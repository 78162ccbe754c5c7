"""An HTTP client whose connections go only where a crawl may go.

Resolves names and checks every address before a connection is made. Follows no redirect, and takes no proxy or password
from the environment.

The check sits below HTTP, where the connection is opened: the name is resolved there, every address it has is judged,
and the connection goes to a judged address itself. A name that answers differently a moment later (DNS rebinding)
therefore gains nothing, while TLS and the Host header still carry the name.
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


# Networks one may own: loopback, RFC 1918, carrier-grade NAT, unique local.
_PRIVATE = _networks(
    "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"
)
# Global by Python's older tables, yet no website is there: protocol assignments (with Teredo, which wraps an IPv4
# address), 6to4 relays, documentation.
_NO_SITES = _networks("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that has ever been given out for public IPv6
_NAT64 = IPv6Network("64:ff9b::/96")


class RefusedAddress(Exception):
    """A connection that was not opened because of where it would have led; the message is for people."""


def judge(address: Address) -> Verdict:
    """Whether an address is public, on a network one may own, or special: a place where no website is (link-local
    with the clouds' metadata service, multicast, reserved, unspecified, documentation)."""
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
    """A client for public websites, and for one's own network where that is allowed. Redirects are left to the
    caller, who must look at each of them. Raises `RefusedAddress` from the request that would break the rule."""
    return httpx2.AsyncClient(
        transport=_GuardedTransport(allow_private=allow_private, connections=connections),
        headers={"User-Agent": user_agent},
        timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=False,
    )


async def resolve(host: str, port: int) -> Sequence[str]:
    """Every address of a name, as numbers. Spellings of an address itself (`127.1`, `2130706433`) are names too."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[4][0]) for place in found))


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    """httpx2's own transport over a pool that opens connections through the guard."""

    def __init__(self, *, allow_private: bool, connections: int) -> None:
        context = httpx2.create_ssl_context()
        super().__init__(verify=context)
        # httpx2 has no public way to hand a network backend through. Should the attribute go away, this line fails
        # instead of leaving an unguarded pool in place.
        assert isinstance(self._pool, httpcore2.AsyncConnectionPool)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=5.0,
            network_backend=_GuardedBackend(allow_private=allow_private),
        )


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections to judged addresses, and nothing else."""

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
        raise RefusedAddress(f"{named} is not an address where a website can be")


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that traffic to an IPv6 address ends up at: mapped, 6to4 or NAT64."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _within(address: Address, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
