"""How much the deterministic judge catches, and what it costs: `python -m bench.grounding`.

Reads `../shared/data` and prints one table per set. A sentence is `shown` when the judge finds it borne out, `replaced`
when the book's own sentence takes its place, `withheld` otherwise. Owns the sets and the counts, never the judging.
"""

import gzip
import json
import random
import re
import sys
import tarfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.edits import FALSE, TRUE
from chapterverse.grounding import Passage, Rules, nearest
from chapterverse.text import sentences

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
BOOKS = {
    "rust_book": "rust_book/rust_book.tar.gz",
    "ros2_docs": "ros2_docs/ros2_docs.tar.gz",
    "k8s_docs": "k8s_docs/k8s_en.tar.gz",
    "ray_docs": "ray_docs/ray_docs.tar.gz",
}
_SEED = 11
_BULLET = re.compile(r"(?:[-*•]|\d+[.)])\s+")
_PER_BOOK = 250  # paragraphs


class Count:
    """What happened to the sentences of one kind."""

    def __init__(self) -> None:
        self.total = self.shown = self.replaced = 0

    def __str__(self) -> str:
        kept = self.total - self.shown - self.replaced
        parts = [f"{100 * part / self.total:5.1f} %" for part in (self.shown, self.replaced, kept)]
        return f"n {self.total:6}   shown {parts[0]}   replaced {parts[1]}   withheld {parts[2]}"


class Table:
    """Counts by kind, and the time that the judge took."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[str, Count] = defaultdict(Count)
        self.seconds = 0.0
        self.misses: dict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, claim: str, passages: Sequence[Passage]) -> bool:
        """Judge one sentence."""
        rules = Rules()
        rules.judge("warm the cache", passages)
        begin = time.perf_counter()
        verdict = rules.judge(claim, passages)
        self.seconds += time.perf_counter() - begin
        count = self.counts[kind]
        count.total += 1
        if verdict.supported:
            count.shown += 1
            self._keep(kind, claim, f"← {verdict.evidence[0].quote}", wrong=not _is_true(kind))
        else:
            count.replaced += nearest(claim, passages, ()) is not None
            self._keep(kind, claim, verdict.why, wrong=_is_true(kind))
        return verdict.supported

    def _keep(self, kind: str, claim: str, why: str, *, wrong: bool) -> None:
        if wrong:
            self.misses[kind].append(f"{claim}\n      {why}")

    def show(self) -> None:
        """Print the table."""
        total = sum(count.total for count in self.counts.values())
        print(f"\n{self.name}: {total} sentences, {1000 * self.seconds / max(total, 1):.2f} ms each")
        for kind, count in self.counts.items():
            print(f"  {kind:24} {count}")


def _is_true(kind: str) -> bool:
    return kind.startswith(("true", "supports"))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def ragtruth() -> Table:
    """Answers of four models to MS MARCO questions, with the stretches that people found unsupported."""
    table = Table("RAGTruth QA (train)")
    for row in _lines(DATA / "ragtruth_qa" / "train.jsonl.gz"):
        parts = [part.strip() for part in re.split(r"passage \d+:", row["passages"]) if part.strip()]
        passages = [Passage(number, text) for number, text in enumerate(parts, start=1)]
        answer = row["response"]
        for start, end in sentences(answer):
            wrong = any(label["start"] < end and start < label["end"] for label in row["labels"])
            claim = _BULLET.sub("", answer[start:end])
            if len(re.findall(r"\w+", claim)) >= 4:
                table.add("unsupported" if wrong else "true", claim, passages)
    return table


def fever() -> Table:
    """Claims that one sentence of evidence supports or refutes, balanced so that the claim alone tells nothing."""
    table = Table("FEVER-Symmetric (dev)")
    for row in _lines(DATA / "fever_symmetric" / "dev.jsonl.gz"):
        table.add(row["label"].lower(), row["claim"], [Passage(1, row["evidence"])])
    return table


def _paragraphs(archive: Path) -> list[str]:
    """Prose of a book: paragraphs of three or more whole sentences."""
    found: list[str] = []
    with tarfile.open(archive) as tar:
        for member in sorted(tar.getmembers(), key=lambda one: one.name):
            if not member.isfile() or not member.name.endswith((".md", ".rst", ".mdx")) or "LICEN" in member.name:
                continue
            file = tar.extractfile(member)
            text = file.read().decode("utf-8", "replace") if file else ""
            text = re.sub(r"```.*?```|<!--.*?-->|\{\{.*?\}\}", "\n\n", text, flags=re.DOTALL)
            for block in re.split(r"\n\s*\n", text):
                prose = re.sub(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", " ".join(block.split()))
                if len(_whole(prose)) >= 3 and not re.search(r"[|<>{}*_=#]|::|http", prose):
                    found.append(prose)
    return found


def _whole(text: str) -> list[str]:
    spans = [text[start:end] for start, end in sentences(text)]
    return [one for one in spans if re.fullmatch(r"[A-Z`].{25,240}\.", one) and len(one.split()) >= 6]


def edited(book: str) -> Table:
    """Sentences of a book, treated by rule, against the paragraph that they come from and two others."""
    table = Table(f"{book}, edited by rule")
    rng = random.Random(f"{_SEED}{book}")
    paragraphs = _paragraphs(DATA / "corpora" / BOOKS[book])
    for at in rng.sample(range(1, len(paragraphs) - 1), min(_PER_BOOK, len(paragraphs) - 2)):
        texts = [paragraphs[at], paragraphs[at - 1], paragraphs[at + 1]]
        passages = [Passage(number, text) for number, text in enumerate(texts, start=1)]
        whole = _whole(paragraphs[at])
        around = [one for text in texts for one in _whole(text)]
        for sentence in whole[:3]:
            for truth, edits in (("true", TRUE), ("false", FALSE)):
                others = [one for one in (whole if truth == "true" else around) if one != sentence]
                for name, edit in edits.items():
                    claim = edit(sentence, others, rng)
                    if (claim and claim != sentence) or name == "verbatim":
                        table.add(f"{truth}: {name}", claim or sentence, passages)
    return table


def main() -> None:
    """Print every table; with an argument, examples of that kind too."""
    if not DATA.exists():
        sys.exit("the data is not here: ../shared/data")
    sets: list[Callable[[], Table]] = [ragtruth, fever, *(partial(edited, book) for book in BOOKS)]
    for table in (make() for make in sets):
        table.show()
        for kind in sys.argv[1:]:
            for example in random.Random(_SEED).sample(table.misses[kind], min(12, len(table.misses[kind]))):
                print(f"    {kind}: {example}")


if __name__ == "__main__":
    main()
