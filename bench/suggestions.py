"""Checks that suggested questions are answered: `python -m bench.suggestions HOME...`.

Makes the suggestions of each home, then asks each in a new session, as a reader would who clicks on it. Homes are not
modified. `example`, the default, is the example book, which is ingested first.
"""

import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from chapterverse.answering import fold, prepare, stream
from chapterverse.evaluation.statistics import wilson_interval
from chapterverse.evaluation.suggesting import make_suggestions
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.models import ChatRequest
from chapterverse.settings import Settings
from chapterverse.wiring import open_services

WANTED = 50
_BOOK = Path(__file__).parent.parent / "examples" / "book"


async def main() -> None:
    """Make the suggestions and ask them."""
    asked = answered = 0
    homes = [None if given == "example" else Path(given) for given in sys.argv[1:]]
    for home in homes or [None]:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "home"
            if home is not None:
                shutil.copytree(home, copy, ignore=shutil.ignore_patterns("readers", "*.lock", "postgres"))
            figures = await _measure(copy, ingesting=home is None)
        print(
            json.dumps({"book": home.name if home else "example"} | figures, indent=1, ensure_ascii=False), flush=True
        )
        asked, answered = asked + figures["suggestions"], answered + figures["answered"]
    low, high = wilson_interval(answered, asked)
    print(json.dumps({"suggestions": asked, "answered": answered, "interval": [round(low, 3), round(high, 3)]}))


async def _measure(home: Path, *, ingesting: bool) -> dict[str, Any]:
    async with open_services(Settings.load(chapterverse_home=home)) as services:
        if ingesting:
            workshop = Workshop(services.index, services.embedder, home)
            await ingest([open_source(str(_BOOK), SourceOptions())], workshop)
        offered = await make_suggestions(services, WANTED)
        endings = []
        for one in offered:
            prepared = await prepare(ChatRequest(query=one.question), services, turns=())
            answer = await fold(stream(prepared, services))
            endings.append(answer.status == "answered" and answer.confidence_level != "low")
    questions = [one.question for one in offered]
    return {"suggestions": len(offered), "answered": sum(endings), "questions": questions}


if __name__ == "__main__":
    asyncio.run(main())
