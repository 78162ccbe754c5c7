"""Questions that people asked, with the passage that answers or does not: SQuAD 2.0, CLAPNQ, Doc2Dial, MTRAG and more.

Owns how each public set becomes rows, and which rows are variants for training only (`made`). Groups are articles,
documents, questions and conversations; the split in `rows.fold` goes by them.
"""

import gzip
import json
import lzma
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from training.edits import Surroundings, contained, content, damage, surroundings
from training.pack import read
from training.prose import detokenised, plain, sentence_spans, sentences
from training.rows import Row, spans_of

WORDS = 150  # of a passage window; 256 tokens hold a question and this in nearly all cases


def windows(parts: Sequence[str], words: int = WORDS, overlap: int = 1) -> list[tuple[int, int]]:
    """Runs of sentences of at most so many words, each beginning with the last sentence of the one before."""
    found, start = [], 0
    while start < len(parts):
        end, used = start, 0
        while end < len(parts) and (end == start or used + len(parts[end].split()) <= words):
            used += len(parts[end].split())
            end += 1
        found.append((start, end))
        if end == len(parts):
            break
        start = max(start + 1, end - overlap)
    return found


def squad(data: Path, seed: int) -> Iterator[Row]:
    with gzip.open(data / "squad2/dev_a.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    for article in articles:
        title = article["title"]
        contexts = [p["context"] for p in article["paragraphs"]]
        for number, paragraph in enumerate(article["paragraphs"]):
            near = surroundings(s for c in contexts[max(0, number - 2) : number + 3] for s in sentences(c))
            for qa in paragraph["qas"]:
                row = _squad_row(title, paragraph["context"], qa)
                yield row
                yield from _squad_variants(row, contexts, near, random.Random(f"{seed}|{qa['id']}"))


def _squad_row(title: str, context: str, qa: dict) -> Row:
    if qa["is_impossible"]:
        return Row(
            "squad", title, qa["question"].strip(), context, 0, None, None, qa.get("unanswerable_cause", "?"), qa["id"]
        )
    spans = [(a["answer_start"], a["answer_start"] + len(a["text"])) for a in qa["answers"]]
    held = [s for s in sentence_spans(context) if s[0] <= spans[0][0] < s[1]]
    return Row("squad", title, qa["question"].strip(), context, 1, spans[0], tuple(held[:1]), "", qa["id"])


def _squad_variants(row: Row, contexts: Sequence[str], near: Surroundings, rng: random.Random) -> Iterator[Row]:
    """More questions without an answer, from those that have one."""
    if not row.y or not row.evidence or not row.answer:
        return
    answer = row.passage[slice(*row.answer)].lower()
    if rng.random() < 0.7 and (changed := damage(row.text, near, rng, ("dropped", "added", "degree"))):
        yield Row("squad", row.group, changed[0], row.passage, 0, kind=changed[1], made=True)
    start, end = row.evidence[0]
    rest = row.passage[:start] + row.passage[end:]
    if rng.random() < 0.35 and len(rest) > 150 and answer not in rest.lower():
        yield Row("squad", row.group, row.text, rest, 0, kind="removed", made=True)
    other = rng.choice(contexts)
    if rng.random() < 0.35 and answer not in other.lower():
        yield Row("squad", row.group, row.text, other, 0, kind="same article", made=True)


def clapnq(data: Path) -> Iterator[Row]:
    for record in read(data / "clapnq/dev_a.jsonl.gz"):
        passage = record["passages"][0]
        parts = [detokenised(s) for s in passage["sentences"]]
        chosen = {detokenised(s) for a in record["answers"] for s in a.get("selected_sentences", [])}
        spans = spans_of(parts)
        evidence = tuple(span for span, part in zip(spans, parts, strict=True) if part in chosen) or None
        row = Row("clapnq", record["id"], record["question"], " ".join(parts), int(record["answerable"]), None,
                  evidence if record["answerable"] else None, passage["title"], record["id"])  # fmt: skip
        yield row
        rest = " ".join(p for p in parts if p not in chosen)
        if row.y and evidence and len(rest) > 150 and contained(record["question"], rest) < 0.8:
            yield Row("clapnq", record["id"], row.text, rest, 0, kind="removed", made=True)


def dialogue_question(turn: dict) -> str:
    """The question with the last exchange before it, as far as it may be needed."""
    before = " ".join(" ".join(h["text"].split()[:25]) for h in turn["history"][-2:])
    return f"{before} {turn['question']}".strip() if before else turn["question"]


def doc2dial_documents(data: Path) -> dict[str, list[str]]:
    return {d["doc_id"]: sentences(d["text"]) for d in read(data / "doc2dial/docs_a.jsonl.gz")}


def doc2dial(data: Path, seed: int) -> Iterator[Row]:
    """Windows of the document: one that holds the gold span, and the likest that do not."""
    documents = doc2dial_documents(data)
    for turn in read(data / "doc2dial/turns_a.jsonl.gz"):
        rng = random.Random(f"{seed}|{turn['id']}")
        parts = documents[turn["doc_id"]]
        gold = " ".join(" ".join(g["text"] for g in turn["gold_spans"]).split())
        asked = dialogue_question(turn)
        hit = {i for i, part in enumerate(parts) if holds(part, gold)}
        runs = windows(parts, rng.choice((70, 110, WORDS)))
        good = [r for r in runs if hit & set(range(*r))]
        bad = [r for r in runs if not hit & set(range(*r))]
        bad.sort(key=lambda r: -len(content(asked) & content(" ".join(parts[slice(*r)]))))
        for run in good[:2]:
            spans = spans_of(parts[slice(*run)])
            evidence = tuple(spans[i - run[0]] for i in range(*run) if i in hit)
            yield Row(
                "doc2dial", turn["doc_id"], asked, " ".join(parts[slice(*run)]), 1, None, evidence, "", turn["id"], True
            )
        for run in bad[:2] if hit else []:
            yield Row(
                "doc2dial", turn["doc_id"], asked, " ".join(parts[slice(*run)]), 0, kind="same document", made=True
            )


def holds(part: str, gold: str) -> bool:
    """Whether a sentence and a gold stretch share most of the shorter one."""
    a, b = part.lower().split(), gold.lower().split()
    if len(a) < 3 or not b:
        return False
    short, long = (part, gold) if len(a) < len(b) else (gold, part)
    small, large = " ".join(short.lower().split()), " ".join(long.lower().split())
    return small in large or (len(content(short)) >= 4 and contained(short, long) >= 0.85)


def mtrag(data: Path, passages: dict[str, str]) -> Iterator[Row]:
    rewritten = {}
    for domain in ("clapnq", "cloud"):
        for query in read(data / f"mtrag/{domain}/queries_rewrite.jsonl"):
            rewritten[query["_id"]] = re.sub(r"^\|\w+\|:\s*", "", query["text"])
    for name in ("tasks", "tasks_un"):
        for task in read(data / f"mtrag/{name}.jsonl.gz"):
            asked = rewritten.get(task["task_id"], task["question"])
            if task["answerability"] in ("UNDERSPECIFIED",) or (task["turn"] > 1 and task["task_id"] not in rewritten):
                continue
            for context in task["contexts"]:
                text = passages.get(context["passage_id"])
                label = context.get("relevant", "yes" if task["answerability"] == "ANSWERABLE" else "")
                if text and label in ("yes", "no"):
                    yield from _judged(
                        "mtrag", task["conversation_id"], asked, text, label == "yes", task["reference_answer"]
                    )
                elif text and task["answerability"] == "UNANSWERABLE":
                    yield from _judged("mtrag", task["conversation_id"], asked, text, False, "")


def mtrag_made(data: Path) -> Iterator[Row]:
    """Conversations that a model wrote; first turns only, the others need their history."""
    for task in read(data / "mtrag/synthetic_tasks.jsonl.gz"):
        if task["turn"] == 1 and task["answerability"] == ["ANSWERABLE"]:
            asked = task["messages"][-1]["text"]
            for text in task["contexts"]:
                yield from _judged(
                    "mtrag_made", task["task_id"].split("<")[0], asked, text, True, task["reference_answer"]
                )


def _judged(name: str, group: str, asked: str, text: str, good: bool, reference: str) -> Iterator[Row]:
    """A passage that people found relevant or not, in windows. Of a relevant one, only windows whose sentences come
    back in the reference answer are taken as answering."""
    parts = sentences(plain(detokenised(text)) if name != "cloud" else plain(text))
    for run in windows(parts)[:4]:
        kept = parts[slice(*run)]
        spans = spans_of(kept)
        evidence = tuple(
            s for s, p in zip(spans, kept, strict=True) if len(content(p)) > 3 and contained(p, reference) >= 0.6
        )
        if good and evidence:
            yield Row(name, group, asked, " ".join(kept), 1, None, evidence, made=True)
        elif not good:
            yield Row(name, group, asked, " ".join(kept), 0, kind="not relevant", made=True)


def halueval(data: Path) -> Iterator[Row]:
    """HotpotQA questions with the sentences that answer them."""
    for record in read(data / "halueval_qa/sample.jsonl.gz"):
        parts = sentences(re.sub(r"(?<=[a-z)])\.(?=[A-Z])", ". ", record["knowledge"]))
        text, right = " ".join(parts), record["right_answer"].strip().rstrip(".")
        at = text.lower().find(right.lower())
        if at < 0 or len(right) < 2:
            continue
        held = tuple(s for s in spans_of(parts) if s[0] <= at < s[1])
        yield Row("halueval", record["question"], record["question"], text, 1, (at, at + len(right)), held)
        rest = " ".join(p for p in parts if right.lower() not in p.lower())
        if len(rest) > 60:
            yield Row("halueval", record["question"], record["question"], rest, 0, kind="removed", made=True)


def ray(data: Path, sections: dict[tuple[str, str], list[str]], seed: int) -> Iterator[Row]:
    """Questions that a model wrote for a section of Ray's documentation; the nearest other section is not it."""
    for record in read(data / "corpora/ray_docs/synthetic_questions.jsonl.gz"):
        page = {a: p for (path, a), p in sections.items() if path == record["gold_path"]}
        right = page.get(record["gold_anchor"])
        if not right:
            continue
        parts = sentences("\n\n".join(right))
        best = max(
            (parts[slice(*r)] for r in windows(parts)),
            key=lambda p: contained(record["question"], " ".join(p)),
            default=[],
        )
        if contained(record["question"], " ".join(best)) >= 0.4:
            yield Row("ray_made", record["gold_path"], record["question"], " ".join(best), 1)
        others = [sentences("\n\n".join(p)) for a, p in page.items() if a != record["gold_anchor"]]
        runs = [p[slice(*r)] for p in others for r in windows(p)]
        runs.sort(key=lambda p: -contained(record["question"], " ".join(p)))
        if runs and contained(record["question"], " ".join(runs[0])) < 0.6:
            yield Row(
                "ray_made", record["gold_path"], record["question"], " ".join(runs[0]), 0, kind="same page", made=True
            )


def gold(folder: Path, prose: Sequence[Sequence], seed: int) -> list[Row]:
    """Every row of every set."""
    data = folder / "data"
    with lzma.open(folder / "mtrag_passages.json.xz", "rt", encoding="utf-8") as file:
        passages = json.load(file)
    by_anchor = {(page, anchor(heading)): list(parts) for source, page, heading, parts in prose if source == "ray"}
    rows = [*squad(data, seed), *clapnq(data), *doc2dial(data, seed), *mtrag(data, passages), *mtrag_made(data)]
    return [*rows, *halueval(data), *ray(data, by_anchor, seed)]


def anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
