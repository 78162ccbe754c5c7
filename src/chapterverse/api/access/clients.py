"""Identifies the client of a request by its IP address or its API key.

`X-Forwarded-For` is used only if it comes from a trusted proxy. Keys are stored, compared and passed on as digests.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import Scope

from chapterverse.errors import Unauthorized
from chapterverse.settings import DIGEST

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the rate limits. `keyed`: it was identified by an API key."""

    name: str
    keyed: bool = False


class Clients:
    """Identifies the client of a request."""

    def __init__(self, trusted_proxies: Sequence[Network] = (), keys: Iterable[str] = ()) -> None:
        self._proxies = tuple(trusted_proxies)
        self._digests = tuple(_configured(key) for key in keys)

    def by_address(self, scope: Scope) -> Client:
        """Return the client by its address: the nearest address that is not a trusted proxy."""
        peer = parse_address((scope.get("client") or ("",))[0])
        if peer is None:  # a unix socket: the client is on this machine
            return Client("local")
        claimed = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        while self._trusts(peer) and claimed and (before := parse_address(claimed.pop())) is not None:
            peer = before
        return Client(_name(peer))

    def sends_key(self, scope: Scope) -> bool:
        """Whether a request has a key, valid or not."""
        return bool(_key(Headers(scope=scope)))

    def by_key(self, scope: Scope) -> Client | None:
        """Return the client by its API key, or None if no keys are configured. Raise `Unauthorized` for a wrong key."""
        if not self._digests:
            return None
        given = _digest(_key(Headers(scope=scope)))
        # All digests are compared, each in constant time, so that the duration reveals nothing about the keys.
        if not sum(hmac.compare_digest(given, digest) for digest in self._digests):
            raise Unauthorized(
                "An API key is needed. Send a valid one as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'."
            )
        return Client(f"key-{given.hex()[:16]}", keyed=True)

    def _trusts(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self._proxies)


def _key(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _configured(key: str) -> bytes:
    """Return the digest of a configured key. `sha256:DIGEST` is accepted, too, so that no file contains the key."""
    return bytes.fromhex(key.removeprefix(DIGEST)) if key.startswith(DIGEST) else _digest(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def parse_address(text: str) -> Address | None:
    """Parse an IP address with optional brackets and port. Return None if it is invalid. An IPv4 address on an IPv6
    socket is returned as IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _name(address: Address) -> str:
    # A household or server usually has a whole /64 of IPv6, so a /64 is one client.
    return str(address) if address.version == 4 else str(ip_network((int(address), 64), strict=False))
