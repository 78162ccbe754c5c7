"""Reads one hostile file in a worker and says what it took: `python -m tests.security.reading_one NAME`.

A program of its own: to the kernel the peak of a process begins with the memory of the one that started it, so beside
the many engines of a test run every worker would seem to take a gigabyte.
"""

import asyncio
import json
import resource
import sys

from chapterverse.ingestion.document import Document, Unreadable
from chapterverse.ingestion.worker_limits import ReadLimits
from chapterverse.ingestion.workers import DocumentReader
from tests.security.hostile_files import ENDLESS, LARGE, SUFFIXES


async def main(name: str) -> None:
    file = next(one for one in (*ENDLESS, *LARGE) if one.name == name)
    document = Document(f"x/{name}", f"{name}.{SUFFIXES[file.format]}", "x", file.format, file.make())
    reader, characters, why = DocumentReader(ReadLimits()), 0, None
    try:
        characters = sum(len(page.text) for page, _ in await reader.read(document, 256))
    except Unreadable as error:
        why = str(error)
    finally:
        await reader.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {"bytes": len(document.data), "characters": characters, "why": why}
    print(json.dumps({**found, "seconds": used.ru_utime, "peak": used.ru_maxrss * 1024}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
