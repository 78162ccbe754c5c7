"""Sentences that people judged against their evidence, from the public sets: only those that the verifier never saw.

Owns how each set becomes claims. The verifier was trained without part 0 of every set (`training.rows.fold`) and
without AttributionBench; everything else is left out here. Never judges, never scores.
"""

import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from training.rows import Row, fold

from chapterverse.text import sentences

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
SEED: Final = 20251115
MOST: Final = 800  # rows of a set
_MARK = re.compile(r"^(?:[-*•]|\(?\d{1,2}[.):])\s+")
# What a model says about its answer, and lines that announce a list, claim nothing about the passages.
_TALK = re.compile(
    r"unable to answer|^(?:sure|here (?:is|are)|please|i hope|let me know|certainly|feel free|if you have any)\b",
    re.IGNORECASE,
)
_TOKENISED = (
    (re.compile(r"`` | ''"), '"'),
    (re.compile(r"\( "), "("),
    (re.compile(r" ([.,;:)?!%]|'s\b|n't\b)"), r"\1"),
    (re.compile(r" - "), "-"),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, the texts that it is held against, and what people said."""

    name: str  # of the set
    group: str  # document or question: never on both sides of a threshold
    text: str
    passages: tuple[str, ...]
    true: bool
    answer: str = ""  # the response that it is a sentence of
    talk: bool = False  # claims nothing

    @property
    def fixing(self) -> bool:
        """Whether it is of the half of the documents on which thresholds are fixed; the others are reported."""
        return int(hashlib.sha256(f"half|{self.group}".encode()).hexdigest()[:8], 16) % 2 == 0


def read(path: str) -> Iterator[dict[str, Any]]:
    """The lines of a file of `../shared/data`."""
    with gzip.open(DATA / path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def unseen(name: str, group: str) -> bool:
    """Whether a document is of the part that the verifier was not trained on."""
    return fold(Row(name, group, "", "", 0)) == 0


def is_talk(said: str) -> bool:
    """Whether a sentence of a model claims nothing about the passages."""
    return bool(_TALK.search(said)) or said.rstrip("*_ ").endswith(":") or len(re.findall(r"\w{3,}", said)) < 3


def ragtruth() -> list[Claim]:
    """Every sentence of four models' answers, with the stretches that people found unsupported."""
    found: list[Claim] = []
    for row in read("ragtruth_qa/train.jsonl.gz"):
        group = str(row["source_id"])
        if not unseen("ragtruth", group):
            continue
        passages = tuple(part.strip() for part in re.split(r"passage \d+:", row["passages"]) if part.strip())
        answer = row["response"]
        for start, end in sentences(answer):
            said = _MARK.sub("", " ".join(answer[start:end].split()))
            wrong = any(min(end, label["end"]) - max(start, label["start"]) > 2 for label in row["labels"])
            if re.search(r"\w", said):
                found.append(Claim("RAGTruth", group, said, passages, not wrong, row["id"], is_talk(said)))
    return found


def fever() -> Iterator[Claim]:
    """Claims that one sentence of evidence supports or refutes, balanced so that the claim alone tells nothing."""
    for row in read("fever_symmetric/dev.jsonl.gz"):
        group = str(row["id"]).lstrip("0")  # pairs come in fours that share claims and evidence
        if unseen("fever", group):
            claim, evidence = _plain(row["claim"]), _plain(row["evidence"])
            yield Claim("FEVER-Symmetric", group, claim, (evidence,), row["label"] == "SUPPORTS")


def wice() -> Iterator[Claim]:
    """Claims of Wikipedia against the pages that they cite, without those whose parts were trained on."""
    trained = {row["id"].split("-")[0] for part in ("train", "dev") for row in read(f"wice/tokens_{part}.jsonl.gz")}
    for row in read("wice/claims_dev.jsonl.gz"):
        group = row["id"].split("-")[0]
        if unseen("wice", group) and group not in trained:
            yield Claim("WiCE", group, row["claim"], (" ".join(row["evidence"]),), row["label"] == "supported")


def scifact() -> Iterator[Claim]:
    """Claims of biology against abstracts that support them, contradict them or say nothing."""
    abstracts = {str(row["_id"]): row for row in read("scifact/corpus.jsonl.gz")}
    for row in read("scifact/claims_train.jsonl.gz"):
        labels: dict[str, str] = {}
        for item in row["evidence"]:
            labels.setdefault(str(item["doc_id"]), item["label"])
        documents = sorted({str(one) for one in row["cited_doc_ids"]} | set(labels))
        if not unseen("scifact", documents[0]):
            continue
        for document in (one for one in documents if one in abstracts):
            text = " ".join([f"{abstracts[document]['title']}.", *abstracts[document]["sentences"]])
            yield Claim("SciFact", documents[0], row["claim"], (text,), labels.get(document) == "SUPPORT")


def summedits() -> Iterator[Claim]:
    """Summaries with and without one small wrong edit."""
    for row in read("summedits/dev.jsonl.gz"):
        group = row["doc"][:80]
        if unseen("summedits", group):
            yield Claim("SummEdits", group, row["claim"], (row["doc"],), bool(row["consistent"]))


def attribution() -> Iterator[Claim]:
    """Answers of search engines with the pages that they cite. Never trained on."""
    for row in read("attributionbench/dev.jsonl.gz"):
        said = row["claim"] if len(row["claim"].split()) >= 7 else f"{row['question'].rstrip('?')}? {row['claim']}"
        yield Claim("AttributionBench", row["question"], said, tuple(row["references"]), bool(row["attributable"]))


SETS: Final[tuple[Callable[[], Iterator[Claim]], ...]] = (fever, wice, scifact, summedits, attribution)


def sample(claims: list[Claim]) -> list[Claim]:
    """At most 800 of a set, always the same."""
    return random.Random(SEED).sample(claims, MOST) if len(claims) > MOST else claims


def _plain(text: str) -> str:
    for pattern, replacement in _TOKENISED:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())
