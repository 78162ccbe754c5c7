"""Identifies the client: its address, from trusted proxies only, or the API key it sent.

Keys are not kept: only digests are compared, stored and passed on.
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
    """Whom the limits count."""

    name: str
    keyed: bool = False


class Clients:
    """Tells clients apart."""

    def __init__(self, trusted_proxies: Sequence[Network] = (), keys: Iterable[str] = ()) -> None:
        self._proxies = tuple(trusted_proxies)
        self._digests = tuple(_configured(key) for key in keys)

    def by_address(self, scope: Scope) -> Client:
        """The client as the network sees it: the nearest address that is no trusted proxy."""
        peer = _parse((scope.get("client") or ("",))[0])
        if peer is None:  # a unix socket: whoever connects to it is on this machine
            return Client("local")
        claimed = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        while self._trusts(peer) and claimed and (before := _parse(claimed.pop())) is not None:
            peer = before
        return Client(_name(peer))

    def sends_key(self, scope: Scope) -> bool:
        """Whether a request has a key, be it a valid one or not."""
        return bool(_key(Headers(scope=scope)))

    def by_key(self, scope: Scope) -> Client | None:
        """The client by its API key; None when no keys are configured, and then all may ask."""
        if not self._digests:
            return None
        given = _digest(_key(Headers(scope=scope)))
        # Every digest is compared to its end, so that the time taken tells nothing.
        if not sum(hmac.compare_digest(given, known) for known in self._digests):
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
    """The digest of a configured key, which may be given as `sha256:` and its digest, so that no key lies in a file."""
    return bytes.fromhex(key.removeprefix(DIGEST)) if key.startswith(DIGEST) else _digest(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _parse(text: str) -> Address | None:
    """An address as peers and proxies write it: with or without brackets and port."""
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
    # One household or server holds a whole /64 of IPv6, so that is one client.
    return str(address) if address.version == 4 else str(ip_network((int(address), 64), strict=False))
