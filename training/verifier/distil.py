"""Teach a smaller verifier what the six-layer one says, with the embedder's word table, which never moves.

The student starts from some of the teacher's layers and sees the rows of `train`: rule-made ones first, statements that
people judged second. Part 0 is kept apart, and an eighth of the other parts' documents besides: by that eighth one of
several tries is chosen. Writes each try's weights without the table, and its figures on the eighth. Run from the
repository root on the GPU machine, after `pack.py` and `prepare`:

    python3 -m training.verifier.distil FOLDER OUT [small] TRY …

A try is LAYERS:EPOCHS:EPOCHS:RATE, such as 135:2:3:6e-5.
"""

import hashlib
import json
import os
import pickle
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from training.cross_encoder import (
    DEVICE,
    CrossEncoder,
    Encoded,
    Loss,
    Plan,
    encode,
    fit,
    log,
    missed,
    predict,
    state_of,
    tokenizer,
)  # fmt: skip
from training.pack import SEED, load_pieces, pack_weights, save_pieces, unpack_weights
from training.rates import auroc
from training.reader.synth import learn_verbs
from training.reader.train import load_prose, pages_of
from training.rows import Row, fold
from training.verifier.data import NEVER_TRAINED
from training.verifier.train import judged, rule_rows, verbs_of_process, weigher

WORDS = "encoder.embeddings.word_embeddings.weight"
_EIGHTH = 8


def prepare(weights: Path, embedder: Path, folder: Path) -> None:
    """Here, before the rest goes to the GPU machine: the teacher in int8 rows, and the embedder's table."""
    from training.words import table

    np.savez_compressed(folder / "teacher.npz", **pack_weights(load_pieces(weights)))
    np.savez_compressed(folder / "words.npz", words=table(embedder).astype(np.float16))


def held_out(row: Row) -> bool:
    return int(hashlib.sha256(f"held|{row.name}|{row.group}".encode()).hexdigest()[:8], 16) % _EIGHTH == 0


def teacher_of(folder: Path) -> CrossEncoder:
    model = CrossEncoder(folder)
    state = unpack_weights(dict(np.load(folder / "teacher.npz")))
    model.load_state_dict({name: torch.from_numpy(v) for name, v in state.items()})
    return model.to(DEVICE).eval().requires_grad_(False)


def student_of(teacher: CrossEncoder, folder: Path, layers: Sequence[int]) -> CrossEncoder:
    model = CrossEncoder(folder, layers=len(layers))
    state = {k: v for k, v in teacher.state_dict().items() if ".layer." not in k}
    for place, layer in enumerate(layers):
        start = f"encoder.encoder.layer.{layer}."
        state |= {k.replace(start, f"encoder.encoder.layer.{place}."): v
                  for k, v in teacher.state_dict().items() if k.startswith(start)}  # fmt: skip
    state[WORDS] = torch.from_numpy(np.load(folder / "words.npz")["words"].astype(np.float32))
    model.load_state_dict(state)
    model.encoder.embeddings.word_embeddings.weight.requires_grad_(False)
    return model.to(DEVICE)


def set_dropout(model: CrossEncoder, share: float) -> None:
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = share


def lesson(teacher: CrossEncoder, inner: float, labels: float) -> Loss:
    """Say what the teacher says, think what it thinks after every other layer, and heed the labels."""

    def loss(student: CrossEncoder, batch: list[torch.Tensor]) -> torch.Tensor:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            with torch.no_grad():
                wanted, _, deep = teacher.read(*batch[:3])
            logit, marks, flat = student.read(*batch[:3])
        logit, weight, mask = logit.float(), batch[-1].float(), batch[1][..., None].float()
        said = F.binary_cross_entropy_with_logits(logit, torch.sigmoid(wanted.float()), reduction="none")
        total = (said * weight).sum() / weight.sum() + 0.05 * F.smooth_l1_loss(logit, wanted.float())
        step = (len(deep) - 1) // (len(flat) - 1)
        for place in range(1, len(flat)):
            apart = (flat[place].float() - deep[place * step].float()) ** 2 * mask
            total = total + inner * apart.sum() / (mask.sum() * apart.shape[-1])
        return total + labels * missed(logit, marks.float(), batch)

    return loss


def encoded_page(job: tuple[list, Path]) -> list[Encoded]:
    return encode(rule_rows(job[0]), tokenizer(job[1]))


def all_rows(folder: Path, quick: bool) -> tuple[list[Encoded], list[Row]]:
    """Rule-made rows as numbers, and people's. Kept on the machine for the next call."""
    kept = folder / "rows.pkl"
    if not kept.exists():
        prose = load_prose(folder)
        verbs = learn_verbs(" ".join(parts) for _, _, _, parts in prose)
        pages = [(page, folder) for page in pages_of(prose)[:: 2500 if quick else 1]]
        with ProcessPoolExecutor(2 if quick else 15, initializer=verbs_of_process, initargs=(verbs,)) as pool:
            people = pool.submit(judged, folder)
            made = [row for part in pool.map(encoded_page, pages, chunksize=32) for row in part]
            kept.write_bytes(pickle.dumps((made, people.result()), 5))
    made, found = pickle.loads(kept.read_bytes())
    return made[: 40 if quick else None], [r for r in found if r.name not in NEVER_TRAINED and fold(r) != 0][
        :: 700 if quick else 1
    ]


def figures(model: CrossEncoder, rows: Sequence[Row], folder: Path) -> dict[str, list[float]]:
    """AUROC by set; for RAGTruth also which share of the true scores above 99 % of the unsupported."""
    logits, _ = predict(
        model, encode([Row(r.name, r.group, r.text, r.passage, r.y) for r in rows], tokenizer(folder, 256))
    )
    out = {}
    for name in dict.fromkeys(r.name for r in rows):
        mine = np.array([r.name == name for r in rows])
        y, scores = np.array([r.y for r in rows])[mine], logits[mine]
        out[name] = [round(auroc(y, scores), 4), int(mine.sum())]
        if name == "ragtruth" and (y == 0).any():
            least = np.quantile(scores[y == 0], (0.9, 0.99))
            out[name] += [round(float((scores[y == 1] >= t).mean()), 4) for t in least] + [
                round(float(t), 2) for t in least
            ]
    return out


def study(
    student: CrossEncoder,
    teacher: CrossEncoder,
    made: list[Encoded],
    people: Sequence[Row],
    spec: list[str],
    folder: Path,
) -> None:
    quick = len(made) < 1000
    weights = weigher(people)
    real = encode(people, tokenizer(folder), lambda r: weights[r.name, r.y])
    assert len(real) == len(people)
    common = np.array([i for i, r in enumerate(people) if r.name.endswith("ragtruth") and (r.y or r.made)])
    always = np.setdiff1d(np.arange(len(people)), common)
    rows, mix = [*real, *made], np.random.default_rng(SEED)
    set_dropout(student, 0.0)  # there are rows enough
    first = Plan(int(spec[1]), 3e-4, 4096 if quick else 49152, SEED, f"{spec[0]}: first stage")
    fit(student, rows, lambda _: np.arange(len(rows)), first, lesson(teacher, 1.0, 0.3))

    def epoch(number: int) -> np.ndarray:
        again = mix.choice(len(made), min(len(made), 12_000), replace=False) + len(real)
        some = mix.choice(common, min(len(common), 12_000), replace=False)
        return np.concatenate([always, some, again])

    set_dropout(student, 0.1)
    second = Plan(int(spec[2]), float(spec[3]), 2048 if quick else 12288, 7, f"{spec[0]}: second stage")
    fit(student, rows, epoch, second, lesson(teacher, 0.2, 1.0))


def main(folder: Path, out: Path, tries: Sequence[str], quick: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    log(DEVICE, os.cpu_count(), "cores")
    made, people = all_rows(folder, quick)
    test = [r for r in people if held_out(r) and not r.made]
    people = [r for r in people if not held_out(r)]
    log("rule-made", len(made), "people's", len(people), "held out", len(test))
    teacher = teacher_of(folder)
    report = {"teacher, which saw them": figures(teacher, test, folder)}
    for name in tries:
        spec = name.split(":")
        torch.manual_seed(SEED)
        student = student_of(teacher, folder, [int(layer) for layer in spec[0]])
        study(student, teacher, made, people, spec, folder)
        report[name] = figures(student, test, folder)
        log(name, report[name])
        state = {k: v for k, v in state_of(student).items() if k != WORDS}
        save_pieces(state, out / f"verifier-{name.replace(':', '-')}")
        (out / "figures.json").write_text(json.dumps(report), "utf-8")
    log("done", report)


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(*(Path(argument) for argument in sys.argv[2:5]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), [a for a in sys.argv[3:] if ":" in a], "small" in sys.argv)
