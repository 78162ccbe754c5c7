"""A small website on loopback for the crawler tests: routes, ETags, request counters and failures."""

import asyncio
import gzip
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chapterverse.ingestion.document import Document, Failed, Fetched, Skipped, Unchanged
from chapterverse.ingestion.options import SourceOptions

QUICK = SourceOptions(allow_private=True, delay=0.0, retry_delay=0.001)


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    body: bytes = b""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Iterable[bytes] | None = None  # sent without a length, until the client closes the connection
    etag: str = ""


Handler = Callable[[Request], Awaitable[Answer]]


class Website:
    """Answers requests from `routes` and records them."""

    def __init__(self) -> None:
        self.routes: dict[str, Answer | Handler] = {}
        self.requests: list[Request] = []
        self.origin = ""
        self.port = 0
        self.active = self.peak = 0
        self.connections: set[asyncio.StreamWriter] = set()
        self.idle = asyncio.Event()  # set while no connection is open

    def page(self, path: str, *links: str, text: str = "", etag: str = "", head: str = "") -> None:
        """An HTML page with links."""
        anchors = "".join(f'<p><a href="{link}">to {link}</a></p>' for link in links)
        html = (
            f"<html><head><title>{path}</title>{head}</head><body><h1>{path}</h1><p>{text}</p>{anchors}</body></html>"
        )
        self.routes[path] = Answer(html.encode(), etag=etag)

    def sitemap(self, *paths: str, at: str = "/sitemap.xml", packed: bool = False, index: bool = False) -> None:
        outer, inner = ("sitemapindex", "sitemap") if index else ("urlset", "url")
        entries = "".join(
            f"<{inner}><loc>{path if '://' in path else self.origin + path}</loc></{inner}>" for path in paths
        )
        xml = f'<{outer} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{outer}>'.encode()
        self.routes[at] = Answer(gzip.compress(xml) if packed else xml, content_type="application/xml")

    def text(self, path: str, text: str) -> None:
        self.routes[path] = Answer(text.encode(), content_type="text/plain")

    def redirect(self, path: str, to: str, status: int = 301) -> None:
        self.routes[path] = Answer(status=status, headers={"Location": to})

    def count(self) -> Counter[str]:
        """How often each path was requested."""
        return Counter(request.path for request in self.requests)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        self.idle.clear()
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                request = Request(head[0].split(" ")[1], dict(_pair(line) for line in head[1:] if line))
                self.requests.append(request)
                self.active += 1
                self.peak = max(self.peak, self.active)
                try:
                    answer = await self._answer(request)
                finally:
                    self.active -= 1
                await _send(writer, answer)
                if answer.stream is not None:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.connections.discard(writer)
            if not self.connections:
                self.idle.set()

    async def _answer(self, request: Request) -> Answer:
        route = self.routes.get(request.path.partition("?")[0], Answer(b"no such page", status=404))
        answer = route if isinstance(route, Answer) else await route(request)
        if answer.etag and request.headers.get("if-none-match") == answer.etag:
            return Answer(status=304)
        return answer


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    headers = {"Content-Type": answer.content_type, **answer.headers}
    if answer.etag:
        headers["ETag"] = answer.etag
    if answer.stream is None and answer.status != 304:
        headers["Content-Length"] = str(len(answer.body))
    lines = [f"HTTP/1.1 {answer.status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body)
    await writer.drain()
    for piece in answer.stream or ():
        writer.write(piece)
        await writer.drain()


@asynccontextmanager
async def website() -> AsyncIterator[Website]:
    site = Website()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(site.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    site.origin = f"http://127.0.0.1:{site.port}"
    try:
        yield site
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True)
class Outcomes:
    """What a source reported, by kind. Paths are without the origin of the site."""

    documents: dict[str, Document]
    unchanged: set[str]
    skipped: dict[str, str]
    failed: dict[str, str]


async def collect(pages: AsyncIterator[Fetched], origin: str = "") -> Outcomes:
    outcomes = Outcomes({}, set(), {}, {})
    seen: list[str] = []
    async for page in pages:
        path = page.url.removeprefix(origin)
        seen.append(path)
        match page:
            case Document():
                outcomes.documents[path] = page
            case Unchanged():
                outcomes.unchanged.add(path)
            case Skipped():
                outcomes.skipped[path] = page.why
            case Failed():
                outcomes.failed[path] = page.why
    assert len(seen) == len(set(seen)), f"an address was reported twice: {seen}"
    return outcomes
