"""The corpora and question sets of the retrieval bench.

Files in `../shared/data` become pages, questions and the relevant documents of each question. Every passage of a set
becomes a `Page` of plain paragraphs. Ray's pages are read by the product's own readers.
"""

import csv
import gzip
import json
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from chapterverse.book import Block, Page, Section, page_id_for
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Format, NothingToRead, Unreadable
from chapterverse.ingestion.readers import read

Measure = Literal["nDCG", "MRR", "hit"]

DATA: Final = Path(__file__).resolve().parents[3] / "shared" / "data"
# Maximum number of earlier user turns that are added to a Doc2Dial question. The agent's turns are left out: the agents
# of Doc2Dial wrote with the right page open, so their words would reveal it.
_HISTORY: Final = 2


class DataMissing(Exception):
    """The data is not where it is expected."""


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Questions with the documents that answer them, and how a ranking is scored."""

    name: str
    measure: Measure
    depth: int
    questions: Mapping[str, str]  # by id of the question
    relevant: Mapping[str, Mapping[str, float]]  # id of the question -> id of a document -> grade

    @property
    def label(self) -> str:
        """Name and measure."""
        return f"{self.name} {self.measure}@{self.depth}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents that are indexed together, and the sets asked of them."""

    name: str
    documents: Mapping[str, tuple[Page, ...]]  # by id; a file may hold several pages
    sets: tuple[RetrievalSet, ...]


def corpora(names: Collection[str] = (), data: Path = DATA) -> Iterator[Corpus]:
    """Yield the named corpora, or all. Each is read when it is used."""
    if not data.is_dir():
        raise DataMissing(f"No data at {data}. The bench reads `shared/data` beside the repository's folder.")
    loaders: tuple[Callable[[Path], Corpus], ...] = (squad, doc2dial, ray, scifact, clapnq, cloud)
    for load in loaders:
        if not names or load.__name__ in names:
            yield load(data)


def squad(data: Path) -> Corpus:
    """SQuAD 2.0 dev_a: which paragraph was an answerable question written for?"""
    documents: dict[str, tuple[Page, ...]] = {}
    questions: dict[str, str] = {}
    relevant: dict[str, dict[str, float]] = {}
    with gzip.open(data / "squad2" / "dev_a.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    for article in articles:
        title = article["title"].replace("_", " ")
        for number, paragraph in enumerate(article["paragraphs"]):
            document = f"{article['title']}/{number}"
            documents[document] = (plain_page(document, title, paragraph["context"]),)
            for question in paragraph["qas"]:
                if not question["is_impossible"]:
                    questions[question["id"]] = question["question"]
                    relevant[question["id"]] = {document: 1.0}
    return Corpus("squad", documents, (RetrievalSet("SQuAD dev_a paragraph", "MRR", 10, questions, relevant),))


def doc2dial(data: Path) -> Corpus:
    """Doc2Dial: which help page is the dialogue about? With the question alone, and with the user's previous turns."""
    documents = {
        row["doc_id"]: (plain_page(row["doc_id"], row["doc_id"].split("#")[0], row["text"]),)
        for row in rows(data / "doc2dial" / "docs_a.jsonl.gz")
    }
    alone: dict[str, str] = {}
    after: dict[str, str] = {}
    relevant: dict[str, dict[str, float]] = {}
    for turn in rows(data / "doc2dial" / "turns_a.jsonl.gz"):
        alone[turn["id"]] = turn["question"]
        said = [message["text"] for message in turn["history"] if message["speaker"] == "user"]
        after[turn["id"]] = "\n".join([*said[-_HISTORY:], turn["question"]])
        relevant[turn["id"]] = {turn["doc_id"]: 1.0}
    return Corpus(
        "doc2dial",
        documents,
        (
            RetrievalSet("Doc2Dial page, question alone", "hit", 1, alone, relevant),
            RetrievalSet("Doc2Dial page, with history", "hit", 1, after, relevant),
        ),
    )


def ray(data: Path) -> Corpus:
    """Ray's documentation as published: which page did a person label as right?"""
    folder = data / "corpora" / "ray_docs"
    documents: dict[str, tuple[Page, ...]] = {}
    with tarfile.open(folder / "ray_docs.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and member.name.endswith((".md", ".rst")):
                documents[member.name] = _read(member.name, content.read())
    asked = list(rows(folder / "questions_dev.jsonl"))
    questions = {row["id"]: row["question"] for row in asked}
    relevant = {row["id"]: {row["gold_path"]: 1.0} for row in asked}
    return Corpus("ray", documents, (RetrievalSet("Ray page", "hit", 5, questions, relevant),))


def scifact(data: Path) -> Corpus:
    """SciFact as in BEIR: which abstracts are evidence for or against a claim?"""
    folder = data / "scifact"
    documents = {
        row["_id"]: (plain_page(row["_id"], row["title"], row["text"]),) for row in rows(folder / "corpus.jsonl.gz")
    }
    relevant = _grades(folder / "qrels_train.tsv")
    questions = {row["_id"]: row["text"] for row in rows(folder / "queries_train.jsonl") if row["_id"] in relevant}
    return Corpus("scifact", documents, (RetrievalSet("SciFact", "nDCG", 10, questions, relevant),))


def clapnq(data: Path) -> Corpus:
    """MTRAG over Wikipedia passages."""
    return _mtrag(data / "mtrag" / "clapnq")


def cloud(data: Path) -> Corpus:
    """MTRAG over technical documentation."""
    return _mtrag(data / "mtrag" / "cloud")


def _mtrag(folder: Path) -> Corpus:
    documents: dict[str, tuple[Page, ...]] = {}
    first: dict[str, str] = {}  # a text -> the first id with it
    same: dict[str, str] = {}  # any id -> that first id: a search returns equal texts once
    for row in rows(folder / "passages.jsonl.gz"):
        name, title, text = row["_id"], row["title"], row["text"]
        same[name] = first.setdefault(" ".join(text.split()), name)
        if same[name] == name:
            documents[name] = (plain_page(name, title, text.removeprefix(f"{title}\n")),)
    relevant = {
        question: {same[name]: grade for name, grade in grades.items()}
        for question, grades in _grades(folder / "qrels.tsv").items()
    }
    sets = []
    for kind, called in (("lastturn", "last turn"), ("rewrite", "rewrite")):
        questions = {
            row["_id"]: row["text"].removeprefix("|user|: ")
            for row in rows(folder / f"queries_{kind}.jsonl")
            if row["_id"] in relevant
        }
        sets.append(RetrievalSet(f"MTRAG {folder.name}, {called}", "nDCG", 5, questions, relevant))
    return Corpus(folder.name, documents, tuple(sets))


def plain_page(url: str, title: str, text: str) -> Page:
    """A text as a page: its paragraphs in one section under the title."""
    blocks: list[Block] = []
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    end = -2
    for part in parts:
        start = end + 2
        end = start + len(part)
        blocks.append(Block("paragraph", start, end, 0))
    clean = "\n\n".join(parts)
    section = Section(heading="", level=1, anchor="", start=0, end=len(clean), breadcrumb=())
    return Page(page_id_for(url), url, title, "", "bench", clean, (section,), tuple(blocks))


def _read(path: str, data: bytes) -> tuple[Page, ...]:
    kind: Format = "rst" if path.endswith(".rst") else "markdown"
    document = Document(url=path, path=path, source="ray", format=kind, data=data, anchors="sphinx")
    try:
        return tuple(compose(document, draft) for draft in read(document))
    except (NothingToRead, Unreadable):  # empty includes and redirects, which are never the right page
        return ()


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file, compressed or not."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)
    else:
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _grades(path: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    return grades
