"""Several nodes of one Qdrant cluster behind one client: a node that fails is followed by the next."""

import asyncio
from collections.abc import Sequence
from typing import Final

import httpx

_ROUNDS: Final = 4  # through all nodes; a cluster that lost its leader needs seconds to choose another
_FIRST_PAUSE: Final = 0.2  # seconds after the first round; doubled after each
# The node is gone, or went away with the request. All our requests can be repeated: points have fixed ids.
_LOST: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)


def nodes_of(url: str) -> list[str]:
    """The nodes that a setting names, separated by commas."""
    return [node.strip() for node in url.split(",") if node.strip()]


class ClusterTransport(httpx.AsyncBaseTransport):
    """Sends requests to the node that answered last. One that cannot be reached or fails is followed by the next, for
    some rounds; how long that may take is up to the caller's time limit."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = [httpx.URL(node) for node in nodes]
        self._at = 0
        self._wire = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=None, keepalive_expiry=30))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the first node that has one."""
        count, path = len(self._nodes), request.url.raw_path
        for turn in range(_ROUNDS * count):
            if turn and turn % count == 0:
                await asyncio.sleep(_FIRST_PAUSE * 2 ** (turn // count - 1))
            at, last = (self._at + turn) % count, turn == _ROUNDS * count - 1
            node = self._nodes[at]
            request.url = node.copy_with(raw_path=path)
            request.headers["Host"] = node.netloc.decode("ascii")
            try:
                answer = await self._wire.handle_async_request(request)
            except _LOST:
                if last:
                    raise
                continue
            if answer.status_code < 500 or last:
                self._at = at
                return answer
            await answer.aclose()
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()
