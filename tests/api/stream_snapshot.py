"""Records the event stream that the real server sends for a question. The widget's tests replay it.

The book is the handbook in `tests/browser/sites`. Record the stream again after a change of the answer:
`python -m tests.api.stream_snapshot`.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines
from tests.served import Served, serve

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "chat_stream.sse"
PAGES = Path(__file__).parents[1] / "browser" / "sites" / "pages"
QUESTION: Final[dict[str, Any]] = {"query": "What is known of the fog horn?", "top_k": 2}


def ingest_into(home: Path, source: str, options: SourceOptions) -> None:
    """Ingests a source into this home."""

    async def fill() -> None:
        async with open_engines(Settings.load(chapterverse_home=home)) as engines:
            ledger = await ingest([open_source(source, options)], Workshop(engines.index, engines.embedder, home))
            assert ledger.count("failed") == 0

    with ThreadPoolExecutor(1) as aside:  # Playwright runs its event loop in this thread
        aside.submit(lambda: asyncio.run(fill())).result()


@contextmanager
def handbook_server(home: Path) -> Iterator[Served]:
    """The real server with the handbook, without a model key."""
    ingest_into(home, str(PAGES), SourceOptions(base_url="http://site.test/", generator="mkdocs", module="handbook"))
    with serve(Settings.load(chapterverse_home=home)) as server:
        yield server


def events_of(stream: str) -> list[dict[str, Any]]:
    """The events in the text of a stream."""
    return [json.loads(line.removeprefix("data: ")) for line in stream.split("\n\n") if line.startswith("data: ")]


def main() -> None:
    """Records the stream."""
    with tempfile.TemporaryDirectory() as home, handbook_server(Path(home)) as server:
        SNAPSHOT.write_text(server.http.post("/chat/stream", json=QUESTION).text, "utf-8")


if __name__ == "__main__":
    main()
