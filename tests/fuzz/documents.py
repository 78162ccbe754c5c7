"""Generates damaged and hostile documents: front matter, TOML, CSS, EPUB structure, sitemaps, PDFs and all formats.

`make fuzz` reads 20,000 of them, each in a worker process as an ingest does, and prints the results. The same seed
always gives the same documents: `python -m tests.fuzz.documents --cases 20000 --seed 1`.
"""

import argparse
import asyncio
import gzip
import json
import os
import random
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chapterverse.ingestion.document import Document, Format, NothingToRead, Unreadable
from chapterverse.ingestion.page_reading import Pages
from chapterverse.ingestion.sources.sitemap import parse_sitemap
from chapterverse.ingestion.worker_limits import ReadLimits
from chapterverse.ingestion.workers import DocumentReader
from tests.fuzz.test_readers import FORMATS, NASTY, SOUND
from tests.ingestion.readers.test_epub import FILES, archive
from tests.ingestion.readers.test_pdf import write_pdf

MOST_SECONDS = 10.0  # of CPU time, which does not depend on the load of the machine
MOST_BYTES = 1024 * 2**20

Made = tuple[Format, bytes]


def token(pick: random.Random) -> str:
    """A hostile token, once or many times."""
    times = pick.choice((1, 1, 1, 2, 30, 300, 3_000))
    return (pick.choice(NASTY) * times)[:40_000]


def mutated(data: bytes, pick: random.Random) -> bytes:
    """Removes, repeats, overwrites or flips bytes, or inserts a hostile token."""
    for _ in range(pick.randint(1, 5)):
        start = pick.randint(0, len(data))
        end = min(len(data), start + pick.randint(0, 60))
        put = token(pick).encode()
        flipped = bytes(255 - byte for byte in data[start:end])
        data = pick.choice(
            (
                data[:start] + data[end:],
                data[:end] + data[start:],
                data[:start] + put + data[end:],
                data[:start] + flipped + data[end:],
            )
        )[:2_000_000]
    return data


def any_format(pick: random.Random) -> Made:
    kind = pick.choice(FORMATS)
    return kind, mutated(SOUND[kind], pick)


_SCALARS = (
    "x",
    "1",
    "true",
    "null",
    "~",
    "2024-99-99",
    "0x" + "f" * 400,
    "9" * 5_000,
    "1" + ":59" * 900,
    ".inf",
    "-.nan",
    '"\\ud800"',
)
_KEYS = ("title", "weight", "sidebar_position", "nav_order", "slug", "id", "draft", "a", "<<", "? [a]", "*a", "&a b")


def yaml_value(pick: random.Random, depth: int = 0) -> str:  # noqa: PLR0911 - one flat list reads best
    match pick.randint(0, 9 if depth < 6 else 4):
        case 0 | 1 | 2:
            return pick.choice(_SCALARS)
        case 3:
            return token(pick)[:2_000]
        case 4:
            return pick.choice(("*a", "&a x", "!!python/object:os.system x", "!!int x", "|\n  x", ">-\n  x", "- x"))
        case 5 | 6:
            return "[" + ", ".join(yaml_value(pick, depth + 1) for _ in range(pick.randint(0, 6))) + "]"
        case 7:
            return "[" * pick.choice((10, 1_000, 40_000))
        case 8:
            return "{" * pick.choice((10, 1_000, 40_000))
        case _:
            return "{" + ", ".join(f"{pick.choice(_KEYS)}: {yaml_value(pick, depth + 1)}" for _ in range(3)) + "}"


def front_matter(pick: random.Random) -> Made:
    lines = [f"{pick.choice(_KEYS)}: {yaml_value(pick)}" for _ in range(pick.randint(1, 12))]
    if pick.random() < 0.3:
        lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, pick.choice((3, 30)))]
    text = "---\n" + "\n".join(lines) + "\n---\n# Page\n\nText of the page.\n"
    return pick.choice(("markdown", "mdx")), text.encode("utf-8", "replace")


def toml(pick: random.Random) -> Made:
    values = (
        "1",
        "9" * 5_000,
        '"x"',
        "[" * pick.choice((5, 2_000, 30_000)),
        "{a=" * pick.choice((3, 2_000)),
        "inf",
        "1979-99-99",
    )
    lines = [
        f"{pick.choice(('title', 'weight', 'a.b.c', 'a' + '.a' * 3_000))} = {pick.choice(values)}"
        for _ in range(pick.randint(1, 8))
    ]
    lines += [f"[{'a.' * pick.choice((1, 3_000))}b]"] * pick.randint(0, 2)
    return "markdown", ("+++\n" + "\n".join(lines) + "\n+++\n# Page\n\nText of the page.\n").encode()


_CSS = (
    "color",
    "background",
    "font-size",
    "opacity",
    "display",
    "left",
    "clip",
    "height",
    "transform",
    "overflow",
    "@media x",
    "a{b",
)
_CSS_VALUES = (
    "rgb(1.2.3,.,9)",
    "rgba(1,2,3,..)",
    "#12345",
    "#" + "f" * 300,
    "none",
    "-99999px",
    "0",
    "rect(0,0",
    "scale(0)",
    "9" * 400,
    "url(x)",
    "{",
    "}",
    "'",
    ";",
)


def css(pick: random.Random) -> Made:
    def style() -> str:
        rules = [
            f"{pick.choice(_CSS)}:{' ' * pick.choice((0, 1, 3_000))}{pick.choice(_CSS_VALUES)}"
            for _ in range(pick.randint(1, 8))
        ]
        return (";".join(rules) * pick.choice((1, 1, 50)))[:30_000]

    sheet = "".join(f".c{n}{{{style()}}}" for n in range(pick.randint(0, 4)))
    body = "".join(f'<p class="c{n}" style="{style()}">text {n}</p>' for n in range(pick.randint(1, 6)))
    depth = pick.choice((1, 1, 400, 6_000))
    return pick.choice(("html", "markdown", "mdx")), (
        f"<html><head><style>{sheet}</style></head><body>{'<div>' * depth}<h1>Page</h1><p>Text.</p>{body}</body></html>"
    ).encode()


def epub(pick: random.Random) -> Made:
    files = dict(FILES)
    for _ in range(pick.randint(1, 3)):
        name = pick.choice([name for name in files if name.endswith(("xml", "opf", "html", "ncx"))])
        text = files[name]
        match pick.randint(0, 6):
            case 0:
                found = [piece for piece in text.split(">") if "<" in piece] or [text]
                text = text.replace(one := pick.choice(found) + ">", one * pick.choice((2, 300, 5_000)), 1)
            case 1:
                text = text.replace("?>", f'?><!DOCTYPE x [<!ATTLIST item a CDATA "{"y" * 5_000}">]>', 1)
            case 2:
                text = text.replace("?>", '?><!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>', 1)
            case 3:
                text = "<a>" * pick.choice((50, 5_000, 100_000)) + text
            case 4:
                text = mutated(text.encode(), pick).decode("utf-8", "replace")
            case 5:
                files.pop(name)
                continue
            case _:
                place = pick.randint(0, len(text))
                text = text[:place] + token(pick) + text[place:]
        files[name] = text[:3_000_000]
    data = archive(files)
    return "epub", data if pick.random() < 0.8 else mutated(data, pick)


def pdf(pick: random.Random) -> Made:
    pages = [
        [token(pick)[:300] if pick.random() < 0.3 else "A node does one job." for _ in range(pick.randint(0, 8))]
        for _ in range(pick.randint(1, 4))
    ]
    try:
        data = write_pdf(pages, {"Nodes": 1}, title=token(pick)[:50])
    except UnicodeEncodeError:
        data = SOUND["pdf"]
    changes = (
        (b"/Count 1", b"/Count %d" % pick.choice((0, -1, 2**31, 10**9))),
        (b"/Kids [", b"/Kids [2 0 R " + b"6 0 R " * pick.choice((1, 5_000))),
        (b"/Length ", b"/Length 9999"),
        (b"endstream", b""),
        (b" 0 obj", b" 0 obj <<" + b"[" * pick.choice((1, 20_000))),
        (b"/Contents 7 0 R", b"/Contents [" + b"7 0 R " * pick.choice((1, 3_000)) + b"]"),
        (b"xref", b"xref\n0 9999999"),
        (b"/Parent 2 0 R", b"/Parent 6 0 R"),
        (b"MediaBox [0 0 595 842]", b"MediaBox [0 0 1e30 -1e30]"),
    )
    for _ in range(pick.randint(0, 3)):
        old, new = pick.choice(changes)
        data = data.replace(old, new, pick.choice((1, -1)))
    return "pdf", data if pick.random() < 0.5 else mutated(data, pick)


def sitemap(pick: random.Random) -> bytes:
    inner = pick.choice(
        (
            "<url><loc>https://a.example/x</loc></url>",
            "<sitemap><loc>https://a.example/x</loc></sitemap>",
            "<a>",
            "<a/>",
            "<loc>",
            token(pick),
        )
    )
    many = inner * min(pick.choice((1, 10, 1_000, 50_000)), 8_000_000 // len(inner) + 1)
    root = pick.choice(("urlset", "sitemapindex", "html", "a:urlset"))
    head = pick.choice(
        ("", '<?xml version="1.0"?>', '<!DOCTYPE x [<!ENTITY a "b">]>', '<?xml version="1.0" encoding="x"?>')
    )
    data = f"{head}<{root}>{many}</{root}>".encode("utf-8", "replace")[:8_000_000]
    data = mutated(data, pick) if pick.random() < 0.4 else data
    return gzip.compress(data) if pick.random() < 0.5 else data


MAKERS: dict[str, Callable[[random.Random], Made]] = {
    "any format": any_format,
    "front matter": front_matter,
    "TOML": toml,
    "CSS": css,
    "EPUB": epub,
    "PDF": pdf,
}
KINDS = (*MAKERS, "sitemap")


@dataclass
class Figures:
    """The results of a run."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")

    def note(self, name: str, outcome: str, seconds: float, peak: int) -> None:
        self.outcomes[outcome] += 1
        self.slowest = max(self.slowest, (seconds, name))
        self.largest = max(self.largest, (peak, name))


async def one(reader: DocumentReader, number: int, seed: int, figures: Figures) -> None:
    """Makes and reads one document. Any result other than pages or a reason is a fault."""
    pick = random.Random(f"{seed}/{number}")
    kind = KINDS[number % len(KINDS)]
    name = f"case {number} of seed {seed} ({kind})"
    if kind == "sitemap":
        data = sitemap(pick)
        Path("/proc/self/clear_refs").write_text("5")  # noqa: ASYNC240 - resets the peak
        started = time.process_time()
        found = parse_sitemap(data)
        seconds = time.process_time() - started
        figures.note(name, "sitemap" if found else "no sitemap", seconds, _peak(os.getpid()))
        return
    form, data = MAKERS[kind](pick)
    document = Document(f"https://book.example/{number}", f"{number}.{form}", "book", form, data)
    reader.prepare()
    assert reader._start is not None
    worker = await reader._start
    pid = worker._process.pid
    before, ended = _cpu(pid), resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        pages: Pages = await reader.read(document, 256)
        outcome = "read"
        for page, chunks in pages:
            assert all(page.text[chunk.start : chunk.end] == chunk.text != "" for chunk in chunks), name
    except Unreadable as why:
        assert str(why)
        outcome = "failed"
        figures.reasons[str(why)[:60]] += 1
    except NothingToRead as why:
        assert str(why)
        outcome = "skipped"
    after, now = _cpu(pid), resource.getrusage(resource.RUSAGE_CHILDREN)
    if after is None or before is None:  # it has ended: killed, or due for replacement
        seconds = now.ru_utime + now.ru_stime - ended.ru_utime - ended.ru_stime - (before or 0)
    else:
        seconds = after - before
    figures.note(name, outcome, seconds, _peak(pid))


def _cpu(pid: int) -> float | None:
    """Seconds of CPU time that a worker has used; None if it ended."""
    try:
        used = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> int:
    """The peak memory of a worker in bytes; for an ended one, the maximum of all ended workers."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


async def run(cases: int, seed: int, readers: int = 1) -> Figures:
    """Reads this many documents."""
    figures = Figures()
    numbers = iter(range(cases))

    async def work() -> None:
        reader = DocumentReader(ReadLimits())
        try:
            for number in numbers:
                await one(reader, number, seed, figures)
                if number and not number % 1_000:
                    print(f"{number:,} …", flush=True)
        finally:
            await reader.close()

    await asyncio.gather(*(work() for _ in range(readers)))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--readers", type=int, default=1, help="side by side; CPU times are exact with one alone")
    given = parser.parse_args()
    started = time.perf_counter()
    figures = asyncio.run(run(given.cases, given.seed, readers=given.readers))
    print(f"{given.cases:,} documents in {time.perf_counter() - started:.0f} s: {dict(figures.outcomes)}")
    print(f"slowest: {figures.slowest[0]:.2f} s of CPU time, {figures.slowest[1]}")
    print(f"largest: {figures.largest[0] / 2**20:.0f} MiB, {figures.largest[1]}")
    for reason, times in figures.reasons.most_common(25):
        print(f"  {times:6,}  {reason}")
    print(json.dumps(figures.outcomes))
    assert figures.slowest[0] < MOST_SECONDS
    assert figures.largest[0] < MOST_BYTES


if __name__ == "__main__":
    main()
