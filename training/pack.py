"""Make the folder that travels to the GPU machine: start weights in int8, prose and question sets, a few MB each.

Owns what is taken along, and how weights are put into files small enough to come back. Run here, before a training run:

    python -m training.pack MODEL_DIR DATA_DIR OUT_DIR
"""

import gzip
import json
import lzma
import random
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from training.prose import Section, detokenised, sections

SEED = 20251115
BOOKS = {
    "k8s": "corpora/k8s_docs/k8s_en.tar.gz",
    "ray": "corpora/ray_docs/ray_docs.tar.gz",
    "rust": "corpora/rust_book/rust_book.tar.gz",
    "ros2": "corpora/ros2_docs/ros2_docs.tar.gz",
    "physical": "corpora/physical_ai_book/docs.tar.gz",
    "physical_small": "corpora/physical_ai_book_small/docs.tar.gz",
}
COPIED = (
    "squad2/dev_a.json.gz", "clapnq/dev_a.jsonl.gz", "doc2dial/docs_a.jsonl.gz", "doc2dial/turns_a.jsonl.gz",
    "mtrag/tasks.jsonl.gz", "mtrag/tasks_un.jsonl.gz", "mtrag/synthetic_tasks.jsonl.gz",
    "corpora/ray_docs/synthetic_questions.jsonl.gz", "ragtruth_qa/train.jsonl.gz", "attributionbench/dev.jsonl.gz",
    "wice/claims_dev.jsonl.gz", "wice/tokens_dev.jsonl.gz", "wice/tokens_train.jsonl.gz", "summedits/dev.jsonl.gz",
    "fever_symmetric/dev.jsonl.gz", "halueval_qa/sample.jsonl.gz", "scifact/claims_train.jsonl.gz",
    "mtrag/cloud/queries_rewrite.jsonl", "mtrag/clapnq/queries_rewrite.jsonl",
)  # fmt: skip
PIECE = 15 << 20  # bytes of a file that may come back


def read(path: Path) -> list[dict]:
    raw = path.read_bytes()
    lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def pack_weights(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices as int8 rows with a scale each; the rest as fp16. Training starts here and goes on in fp32."""
    packed = {}
    for name, values in state.items():
        if values.ndim == 2 and values.size > 100_000:
            scale = np.abs(values).max(1, keepdims=True) / 127
            packed[f"{name}|scale"] = scale.astype(np.float32)
            packed[f"{name}|int8"] = np.round(values / scale).astype(np.int8)
        elif values.dtype.kind == "f":
            packed[name] = values.astype(np.float16)
    return packed


def unpack_weights(packed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    state = {}
    for name, values in packed.items():
        if name.endswith("|int8"):
            state[name[:-5]] = values.astype(np.float32) * packed[f"{name[:-5]}|scale"]
        elif not name.endswith("|scale"):
            state[name] = values.astype(np.float32)
    return state


def save_pieces(state: dict[str, np.ndarray], stem: Path) -> None:
    """fp16 weights as `stem.0.npz`, `stem.1.npz`, …, each small enough to come back; big matrices are cut by rows."""
    pieces: list[dict[str, np.ndarray]] = [{}]
    room = PIECE
    for name, values in state.items():
        half = values.astype(np.float16)
        for number, part in enumerate(np.array_split(half, 1 + half.nbytes // (PIECE // 3))):
            if part.nbytes > room:
                pieces.append({})
                room = PIECE
            pieces[-1][f"{name}|{number:03d}"] = part
            room -= part.nbytes
    for number, piece in enumerate(pieces):
        np.savez(stem.with_name(f"{stem.name}.{number}.npz"), **piece)


def load_pieces(stem: Path) -> dict[str, np.ndarray]:
    parts: dict[str, np.ndarray] = {}
    for file in stem.parent.glob(f"{stem.name}.*.npz"):
        parts.update(np.load(file))
    whole: dict[str, list[np.ndarray]] = {}
    for name in sorted(parts):
        whole.setdefault(name.rsplit("|", 1)[0], []).append(parts[name].astype(np.float32))
    return {name: np.concatenate(rows) if rows[0].ndim else rows[0] for name, rows in whole.items()}


def book_sections(data: Path) -> Iterator[Section]:
    for name, archive in BOOKS.items():
        with tarfile.open(data / archive) as tar:
            for member in sorted(tar.getmembers(), key=lambda m: m.name):
                suffix = Path(member.name).suffix
                if member.isfile() and suffix in (".md", ".mdx", ".rst") and "LICEN" not in member.name:
                    raw = tar.extractfile(member)
                    assert raw is not None
                    yield from sections(name, member.name.removeprefix("./"), raw.read().decode("utf-8", "replace"))


def wiki_sections(data: Path) -> Iterator[Section]:
    """MTRAG's pools: Wikipedia by title, IBM Cloud pages by address; and SciFact's abstracts."""
    for row in read(data / "mtrag/clapnq/passages.jsonl.gz"):
        title, _, text = row["text"].partition("\n")
        if not title.startswith("Wikipedia:"):
            yield Section("wiki", title, title, (detokenised(text),))
    rows = read(data / "mtrag/cloud/passages.jsonl.gz")
    for row in random.Random(SEED).sample(rows, 7000):
        for section in sections("cloud", row["url"], row["text"]):
            yield Section("cloud", row["url"], section.heading, section.paragraphs)
    for row in random.Random(SEED).sample(read(data / "scifact/corpus.jsonl.gz"), 1200):
        yield Section("abstracts", str(row["_id"]), row["title"], (row["text"],))


def needed_passages(data: Path) -> dict[str, str]:
    wanted = {c["passage_id"] for f in ("tasks", "tasks_un") for t in read(data / f"mtrag/{f}.jsonl.gz")
              for c in t.get("contexts", [])}  # fmt: skip
    rows = [r for d in ("clapnq", "cloud") for r in read(data / f"mtrag/{d}/passages.jsonl.gz")]
    return {r["_id"]: r["text"] for r in rows if r["_id"] in wanted}


def needed_abstracts(data: Path) -> dict[str, dict]:
    claims = read(data / "scifact/claims_train.jsonl.gz")
    wanted = {str(d) for c in claims for d in c["cited_doc_ids"]} | {
        str(e["doc_id"]) for c in claims for e in c["evidence"]
    }
    rows = {str(r["_id"]): r for r in read(data / "scifact/corpus.jsonl.gz")}
    return {k: {"title": rows[k]["title"], "sentences": rows[k].get("sentences") or [rows[k]["text"]]}
            for k in wanted if k in rows}  # fmt: skip


def write_xz(path: Path, value: object) -> None:
    with lzma.open(path, "wt", preset=6, encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))


def main(model: Path, data: Path, out: Path) -> None:
    from safetensors.numpy import load_file

    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / "start.npz", **pack_weights(load_file(model / "model.safetensors")))
    shutil.copy(model / "tokenizer.json", out / "tokenizer.json")
    shutil.copy(model / "config.json", out / "config.json")
    found = [s for part in (book_sections(data), wiki_sections(data)) for s in part]
    write_xz(out / "prose.json.xz", [[s.source, s.page, s.heading, s.paragraphs] for s in found])
    write_xz(out / "mtrag_passages.json.xz", needed_passages(data))
    write_xz(out / "abstracts.json.xz", needed_abstracts(data))
    for name in COPIED:
        target = out / "data" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(data / name, target)
    for file in sorted(out.rglob("*")):
        print(f"{file.stat().st_size:>10} {file.relative_to(out)}")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
