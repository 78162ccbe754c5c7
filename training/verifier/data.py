"""Statements that people judged against their evidence: RAGTruth, WiCE, SciFact, SummEdits, FEVER-Symmetric and more.

Owns how each public set becomes rows. AttributionBench has no licence: it is read for tests and never trained on.
"""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from training.edits import contained, content
from training.pack import read
from training.prose import detokenised, sentence_spans, sentences
from training.rows import Row

WORDS = 150  # of evidence; with a statement of up to 60 words it fits 256 tokens nearly always
NEVER_TRAINED = ("attribution",)
_TALK = re.compile(
    r"unable to answer|^(?:sure|here (?:is|are)|please|note that i|i hope|let me know|certainly|based on the)\b",
    re.IGNORECASE,
)
_MARK = re.compile(r"^(?:[-*•]|\(?\d{1,2}[.):])\s+|^passage \d+: ", re.IGNORECASE)


def nearest(statement: str, parts: Sequence[str], words: int = WORDS) -> str:
    """The sentences likest the statement with their neighbours, in their order, up to so many words."""
    lengths = [len(p.split()) for p in parts]
    if sum(lengths) <= words:
        return " ".join(parts)
    stems = [content(p) for p in parts]
    spread = Counter(w for s in stems for w in s)
    wanted = content(statement)
    scores = [sum(spread[w] ** -0.5 for w in wanted & s) / (1 + 0.004 * n) for s, n in zip(stems, lengths, strict=True)]
    kept: set[int] = set()
    left = words
    for best in sorted(range(len(parts)), key=lambda i: -scores[i]):
        for place in (best, best - 1, best + 1):
            if 0 <= place < len(parts) and place not in kept and lengths[place] <= left:
                kept.add(place)
                left -= lengths[place]
        if left < 0.08 * words:
            break
    return " ".join(parts[i] for i in sorted(kept)) or " ".join(max(parts, key=len).split()[:words])


def as_statement(question: str, answer: str) -> str:
    """A bare answer is no statement: its question goes before it."""
    return answer if len(answer.split()) >= 7 else f"{question.strip().rstrip('?')}? {answer.strip()}"


def ragtruth(data: Path) -> Iterator[Row]:
    for record in read(data / "ragtruth_qa/train.jsonl.gz"):
        wrong = [(label["start"], label["end"]) for label in record["labels"]]
        parts = [s for p in re.split(r"passage \d+:", record["passages"]) for s in sentences(p)]
        for start, end in sentence_spans(record["response"]):
            said = _MARK.sub("", " ".join(record["response"][start:end].split()))
            if len(content(said)) >= 3 and not _TALK.search(said):
                false = any(min(end, e) - max(start, s) > 2 for s, e in wrong)
                yield Row(
                    "ragtruth", str(record["source_id"]), said, nearest(said, parts), int(not false), id=record["id"]
                )


def wice(data: Path) -> Iterator[Row]:
    for record in read(data / "wice/claims_dev.jsonl.gz"):
        said, parts = record["claim"], record["evidence"]
        y = int(record["label"] == "supported")
        yield Row("wice", record["id"].split("-")[0], said, nearest(said, parts), y, kind=record["label"])
        held = {i for chosen in record["supporting_sentences"] for i in chosen}
        if y and held:
            group = record["id"].split("-")[0]
            yield Row("wice", group, said, " ".join(parts[i] for i in sorted(held)), 1, made=True)
            rest = [p for i, p in enumerate(parts) if i not in held]
            yield Row("wice", group, said, nearest(said, rest), 0, made=True)


def wice_tokens(data: Path) -> Iterator[Row]:
    for name in ("train", "dev"):
        for record in read(data / f"wice/tokens_{name}.jsonl.gz"):
            y = int(not any(record["non_supported"]))
            yield Row(
                "wice_tokens",
                record["id"].split("-")[0],
                record["claim"],
                nearest(record["claim"], record["evidence"]),
                y,
            )


def scifact(data: Path, abstracts: dict[str, dict]) -> Iterator[Row]:
    for record in read(data / "scifact/claims_train.jsonl.gz"):
        found: dict[str, list[dict]] = {}
        for item in record["evidence"]:
            found.setdefault(str(item["doc_id"]), []).append(item)
        documents = sorted({str(d) for d in record["cited_doc_ids"]} | set(found))
        for document in documents:
            if document not in abstracts:
                continue
            parts = abstracts[document]["sentences"]
            items = found.get(document, [])
            kind = items[0]["label"] if items else "NONE"
            y = int(kind == "SUPPORT")
            text = nearest(record["claim"], [abstracts[document]["title"] + ".", *parts])
            yield Row("scifact", documents[0], record["claim"], text, y, kind=kind)
            if y:
                held = sorted({i for item in items for i in item["sentences"] if i < len(parts)})
                yield Row("scifact", documents[0], record["claim"], " ".join(parts[i] for i in held), 1, made=True)


def summedits(data: Path) -> Iterator[Row]:
    for record in read(data / "summedits/dev.jsonl.gz"):
        group = record["doc"][:80]
        yield Row(
            "summedits",
            group,
            record["claim"],
            nearest(record["claim"], sentences(record["doc"])),
            int(record["consistent"]),
        )


def fever(data: Path) -> Iterator[Row]:
    """Pairs come in fours that share claims and evidence: the group is the number without its leading zeros."""
    for record in read(data / "fever_symmetric/dev.jsonl.gz"):
        group = str(record["id"]).lstrip("0")
        yield Row(
            "fever",
            group,
            detokenised(record["claim"]),
            detokenised(record["evidence"]),
            int(record["label"] == "SUPPORTS"),
        )


def halueval(data: Path) -> Iterator[Row]:
    for record in read(data / "halueval_qa/sample.jsonl.gz"):
        parts = sentences(re.sub(r"(?<=[a-z)])\.(?=[A-Z])", ". ", record["knowledge"]))
        for y, answer in ((1, record["right_answer"]), (0, record["hallucinated_answer"])):
            said = as_statement(record["question"], answer)
            yield Row("halueval", record["question"], said, nearest(said, parts), y)


def clapnq(data: Path) -> Iterator[Row]:
    for record in read(data / "clapnq/dev_a.jsonl.gz"):
        if not record["answerable"]:
            continue
        parts = [detokenised(s) for s in record["passages"][0]["sentences"]]
        for answer in record["answers"]:
            held = {detokenised(s) for s in answer.get("selected_sentences", [])}
            rest = [p for p in parts if p not in held]
            for said in sentences(answer["answer"]):
                if len(content(said)) < 4 or contained(said, " ".join(parts)) < 0.6:
                    continue
                yield Row("clapnq", record["id"], said, nearest(said, parts), 1)
                if rest and contained(said, " ".join(rest)) < 0.75:
                    yield Row("clapnq", record["id"], said, nearest(said, rest), 0)


def attribution(data: Path) -> Iterator[Row]:
    for record in read(data / "attributionbench/dev.jsonl.gz"):
        said = as_statement(record["question"], record["claim"])
        parts = [s for text in record["references"] for s in sentences(text)]
        yield Row(
            "attribution",
            record["question"],
            said,
            nearest(said, parts),
            int(record["attributable"]),
            kind=record["src"],
        )


def mtrag(data: Path, passages: dict[str, str]) -> Iterator[Row]:
    """Sentences of answers that people wrote, against the passages they marked and those they did not."""
    for task in read(data / "mtrag/tasks.jsonl.gz"):
        by_mark: dict[str, list[str]] = {"yes": [], "no": []}
        for context in task["contexts"]:
            if context.get("relevant") in by_mark and context["passage_id"] in passages:
                by_mark[context["relevant"]] += sentences(detokenised(passages[context["passage_id"]]))
        for said in sentences(task["reference_answer"]) if task["answerability"] == "ANSWERABLE" else ():
            if len(content(said)) < 5:
                continue
            for mark, y in (("yes", 1), ("no", 0)):
                inside = contained(said, " ".join(by_mark[mark]))
                if by_mark[mark] and (inside >= 0.6) == bool(y):
                    yield Row("mtrag", task["conversation_id"], said, nearest(said, by_mark[mark]), y)


def gold(folder: Path) -> list[Row]:
    data = folder / "data"
    with lzma.open(folder / "mtrag_passages.json.xz", "rt", encoding="utf-8") as file:
        passages = json.load(file)
    with lzma.open(folder / "abstracts.json.xz", "rt", encoding="utf-8") as file:
        abstracts = json.load(file)
    sets = (
        ragtruth(data), wice(data), wice_tokens(data), scifact(data, abstracts), summedits(data), fever(data),
        halueval(data), clapnq(data), attribution(data), mtrag(data, passages),
    )  # fmt: skip
    return [row for rows in sets for row in rows if row.text and row.passage]
