"""Asks about every difference between two versions of one documentation: no answer may cite the other version.

    python -m bench.editions [--qdrant-url URL] [--save]

The documentation is generated: twenty pages about the parts of a server with ten facts each. Every fact has a different
value in each version. Both versions have the same addresses. Questions go through the real product without a key, in
three ways in turn: unchanged (which means the latest version), with a filter for version 1.0, and as a follow-up in a
conversation that began with that filter. A citation is wrong if its source belongs to the other version, or if its
quote states the other version's value.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.results import save
from chapterverse import Book
from chapterverse.evaluation.statistics import wilson_interval
from chapterverse.models import ChatResponse

BOOK: Final = "harbor"
VERSIONS: Final = ("1.0", "2.0")
PARTS: Final = (
    ("scheduler", "decides which job runs next and on which machine"),
    ("gateway", "takes every request that comes from outside"),
    ("mail relay", "hands messages over to the mail servers of others"),
    ("image store", "keeps the pictures that users upload"),
    ("search service", "finds documents by the words in them"),
    ("billing service", "writes an invoice for each customer"),
    ("audit trail", "notes who changed what, and when"),
    ("session store", "remembers who is signed in"),
    ("report builder", "draws the charts of the monthly report"),
    ("backup agent", "copies the database to another building"),
    ("message broker", "passes events from one service to the next"),
    ("metrics collector", "counts requests and errors"),
    ("key vault", "holds the passwords of the other services"),
    ("file sync", "keeps folders on two machines the same"),
    ("notification center", "tells users that something happened"),
    ("job runner", "executes what was planned for the night"),
    ("access proxy", "lets only known devices in"),
    ("data importer", "reads the tables that partners send"),
    ("template engine", "fills letters with names and dates"),
    ("license server", "says how many people may work at once"),
)
# Heading, sentence, question, and the value in each version, for a part with a given number and short name.
_KINDS: Final[tuple[tuple[str, str, str, tuple[str, str]], ...]] = (
    ("Port", "The {part} listens on port {value}.", "Which port does the {part} use?", ("{0}10", "{0}85")),
    (
        "Time limit",
        "A call of the {part} is given up after {value} seconds.",
        "After how many seconds is a call of the {part} given up?",
        ("2{0}", "9{0}"),
    ),
    (
        "Retries",
        "When something fails, the {part} tries it {value} more times before it raises an alarm.",
        "How often does the {part} try again before it raises an alarm?",
        ("1{0}3", "1{0}7"),
    ),
    (
        "Log file",
        "Everything that the {part} does is written to `/var/log/{value}`.",
        "Where is the log of the {part}?",
        ("old-{1}.log", "{1}/current.log"),
    ),
    (
        "Memory",
        "The {part} keeps at most {value} entries in memory; older ones are dropped.",
        "How many entries does the {part} keep in memory?",
        ("4{0}00", "7{0}50"),
    ),
    (
        "Switching it off",
        "To switch the {part} off, put `{value}` into the configuration file.",
        "Which setting switches the {part} off?",
        ("{1}_enabled: false", "disable: [{1}]"),
    ),
    (
        "Restart",
        "An administrator restarts the {part} with the command `{value}`.",
        "With which command is the {part} restarted?",
        ("harborctl bounce {1}", "harbor service restart {1}"),
    ),
    (
        "Permissions",
        "Only members of the group `{value}` may change the settings of the {part}.",
        "Who may change the settings of the {part}?",
        ("{1}-admins", "operators-of-{1}"),
    ),
    (
        "Interval",
        "The {part} looks for new work every {value} minutes.",
        "How often does the {part} look for new work?",
        ("3{0}", "6{0}"),
    ),
    (
        "Storage",
        "What the {part} needs to remember is stored in `{value}`.",
        "Where does the {part} store what it needs to remember?",
        ("/srv/{1}/data.db", "/opt/harbor/{1}.sqlite"),
    ),
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement of both versions with a different value in each."""

    part: str
    heading: str
    sentence: str
    question: str
    values: tuple[str, str]

    def text_in(self, version: str) -> str:
        """Return the sentence of this fact in a version."""
        return self.sentence.replace("{value}", self.value(version))

    def value(self, version: str) -> str:
        """Return the value of this fact in a version."""
        return self.values[VERSIONS.index(version)]


def facts(parts: int = len(PARTS)) -> list[Fact]:
    """All facts about the first `parts` parts."""
    made = []
    for number, (part, _) in enumerate(PARTS[:parts], start=10):
        short = part.replace(" ", "-")
        for heading, sentence, question, values in _KINDS:
            old, new = (value.format(number, short) for value in values)
            stated, asked = (text.replace("{part}", part) for text in (sentence, question))
            made.append(Fact(part, f"{heading} of the {part}", stated, asked, (old, new)))
    return made


def write_docs(folder: Path, version: str, parts: int = len(PARTS)) -> Path:
    """Write the documentation of a version, one page for each part."""
    known = facts(parts)
    folder.mkdir(parents=True, exist_ok=True)
    for part, purpose in PARTS[:parts]:
        sections = [f"## {one.heading}\n\n{one.text_in(version)}\n" for one in known if one.part == part]
        head = f"# The {part}\n\nThe {part} {purpose}.\n"
        (folder / f"{part.replace(' ', '-')}.md").write_text("\n".join([head, *sections]), "utf-8")
    return folder


async def ingest_versions(book: Book, scratch: Path, parts: int = len(PARTS)) -> None:
    """Ingest both versions into one home from folders of the same name, like two checkouts of one repository."""
    for version in VERSIONS:
        await book.ingest(write_docs(scratch / version / "docs", version, parts), book=BOOK, version=version)


def wrong_citations(answer: ChatResponse, known: Sequence[Fact], version: str) -> list[str]:
    """The quotes of an answer that belong to the other version."""
    other = next(one for one in VERSIONS if one != version)
    return [
        source.quote
        for source in answer.sources
        if (source.book, source.version) != (BOOK, version) or any(one.text_in(other) in source.quote for one in known)
    ]


async def ask_all(book: Book, asked: Iterable[Fact]) -> list[dict[str, Any]]:
    """Ask about each fact in one of the three ways, in turn."""
    rows = []
    for number, fact in enumerate(asked):
        way = ("latest", "filter", "conversation")[number % 3]
        version = VERSIONS[1] if way == "latest" else VERSIONS[0]
        filters = {"book": BOOK, "version": version}
        if way == "latest":
            answer = await book.ask(fact.question)
        elif way == "filter":
            answer = await book.ask(fact.question, filters=filters)
        else:
            first = await book.ask(f"What is the {fact.part}?", filters=filters)
            answer = await book.ask(fact.question, session_id=first.session_id)
        row = {
            "question": fact.question,
            "way": way,
            "status": answer.status,
            "right": any(fact.text_in(version) in source.quote for source in answer.sources),
            "citations": len(answer.sources),
            "wrong": wrong_citations(answer, facts(), version),
            "searched": [f"{one.book} {one.version}" for one in answer.editions],
        }
        rows.append(row)
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The results as figures."""
    wrong = sum(bool(row["wrong"]) for row in rows)
    return {
        "questions": len(rows),
        "ways": dict(Counter(row["way"] for row in rows)),
        "answered": sum(row["status"] == "answered" for row in rows),
        "answered_with_the_fact": sum(row["right"] for row in rows),
        "citations": sum(row["citations"] for row in rows),
        "questions_with_a_wrong_citation": wrong,
        "wrong_share_95_percent": [round(bound, 4) for bound in wilson_interval(wrong, len(rows))],
    }


async def main() -> None:
    """Write, ingest, ask and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qdrant-url", help="a Qdrant server instead of the embedded index")
    parser.add_argument("--save", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        settings = {"qdrant_url": options.qdrant_url, "qdrant_collection_name": "bench_editions"}
        async with Book.open(Path(scratch) / "home", **settings if options.qdrant_url else {}) as book:
            await ingest_versions(book, Path(scratch))
            rows = await ask_all(book, facts())
    result = {"index": "Qdrant server" if options.qdrant_url else "Qdrant Edge", **summary(rows)}
    for name, value in result.items():
        print(f"{name}: {value}")
    for row in rows:
        if row["wrong"] or not row["right"]:
            print(f"  {row['way']}: {row['question']} ({row['status']}) {row['wrong']}")
    if options.save:
        save("editions", {**result, "rows": rows})


if __name__ == "__main__":
    asyncio.run(main())
