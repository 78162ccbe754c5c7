"""Reads one hostile file in a worker and prints time and memory: `python -m tests.security.reading_one NAME`.

It is a separate program because the kernel counts the memory of the parent process towards the peak of a new process.
In the process of the tests, which is large, every worker would seem to use a gigabyte.
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
