"""MiniLM-L6 that reads a text and a passage together: one score for the pair, three for each token of the passage.

Owns the network, its inputs and its training loop; the reader and the verifier are the same network trained on
different rows. Needs torch; nothing of it runs in the product.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from tokenizers import Tokenizer
from torch import nn
from training.pack import load_pieces, unpack_weights
from training.rows import Row
from transformers import BertConfig, BertModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LONGEST = 320  # tokens in training; the product shows at most 256
_BEGAN = time.monotonic()


def log(*words: object) -> None:
    print(f"[{time.monotonic() - _BEGAN:6.1f}s]", *words, flush=True)


class CrossEncoder(nn.Module):
    """Outputs: (pairs,) logit that the passage answers; (pairs, tokens, 3) logits of start, end and evidence."""

    def __init__(self, folder: Path, attention: str = "sdpa", layers: int = 6, dropout: float = 0.1) -> None:
        super().__init__()
        config = BertConfig.from_json_file(folder / "config.json")
        config._attn_implementation = attention
        config.num_hidden_layers = layers
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
        self.encoder = BertModel(config, add_pooling_layer=False)
        width = config.hidden_size
        self.pool, self.judge, self.mark = nn.Linear(width, width), nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.read(input_ids, attention_mask, token_type_ids)[:2]

    def read(self, input_ids, attention_mask, token_type_ids):
        """As `forward`, and what came out of the word table and of each layer."""
        layers = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids, output_hidden_states=True
        ).hidden_states
        first = F.dropout(layers[-1][:, 0], 0.1, self.training)
        return self.judge(torch.tanh(self.pool(first))).squeeze(-1), self.mark(layers[-1]), layers


def start_model(folder: Path, weights: Path | None = None) -> CrossEncoder:
    """From the sentence encoder's weights, or from a trained model's."""
    model = CrossEncoder(folder)
    if weights is None:
        state = unpack_weights(dict(np.load(folder / "start.npz")))
        named = {f"encoder.{name}": torch.from_numpy(v) for name, v in state.items() if "pooler" not in name}
    else:
        named = {name: torch.from_numpy(v) for name, v in load_pieces(weights).items()}
    missing, unexpected = model.load_state_dict(named, strict=False)
    assert not unexpected, unexpected
    log("fresh weights:", missing)
    return model.to(DEVICE)


def tokenizer(folder: Path, longest: int = LONGEST) -> Tokenizer:
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    made.no_padding()
    made.enable_truncation(longest, strategy="only_second")
    return made


@dataclass(frozen=True, slots=True)
class Encoded:
    """A row as numbers. `labels` are of the passage's tokens: 1 evidence, 0 not, -1 not known."""

    ids: np.ndarray
    second: int  # where the passage begins
    y: int
    start: int  # token of the answer's start; 0 none in the passage, -1 not known
    end: int
    labels: np.ndarray | None
    weight: float


def encode(rows: Sequence[Row], tok: Tokenizer, weights: Callable[[Row], float] = lambda row: 1.0) -> list[Encoded]:
    out = []
    for row, tokens in zip(
        rows, tok.encode_batch([(" ".join(r.text.split()[:70]), r.passage) for r in rows]), strict=True
    ):
        second = tokens.sequence_ids.index(1) if 1 in tokens.sequence_ids else len(tokens.ids) - 1
        offsets = np.array(tokens.offsets[second:-1], np.int32).reshape(-1, 2)
        start = end = 0 if not row.y else -1
        if row.answer and len(offsets):
            inside = np.flatnonzero((offsets[:, 1] > row.answer[0]) & (offsets[:, 0] < row.answer[1]))
            if not len(inside):
                continue  # cut off
            start, end = second + int(inside[0]), second + int(inside[-1])
        labels = None if row.y and row.evidence is None else np.zeros(len(offsets), np.int8)
        for low, high in row.evidence or ():
            labels[(offsets[:, 0] >= low) & (offsets[:, 1] <= high)] = 1
        if row.y and row.evidence and not labels.any():
            continue
        out.append(Encoded(np.array(tokens.ids, np.int32), second, row.y, start, end, labels, weights(row)))
    return out


def batches(
    rows: Sequence[Encoded], chosen: np.ndarray, tokens: int, rng: np.random.Generator | None
) -> list[np.ndarray]:
    """Rows of like length together, as many as fit into so many tokens."""
    lengths = np.array([len(rows[i].ids) for i in chosen])
    if rng is None:
        order = np.argsort(lengths, kind="stable")
    else:
        order = np.argsort(lengths + rng.uniform(0, 24, len(lengths)), kind="stable")
    out, at = [], 0
    while at < len(order):
        size = max(1, tokens // (int(lengths[order[at : at + 8]].max()) + 24))
        out.append(chosen[order[at : at + size]])
        at += size
    if rng is not None:
        random.Random(int(rng.integers(1 << 30))).shuffle(out)
    return out


def collate(rows: Sequence[Encoded], chosen: np.ndarray) -> list[torch.Tensor]:
    longest = (max(len(rows[i].ids) for i in chosen) + 7) // 8 * 8
    shape = (len(chosen), longest)
    ids, mask, types = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    labels = np.full(shape, -1, np.float32)
    allowed = np.zeros(shape, bool)
    for line, i in enumerate(chosen):
        row = rows[i]
        n = len(row.ids)
        ids[line, :n], mask[line, :n], types[line, row.second : n] = row.ids, 1, 1
        allowed[line, row.second : n - 1] = allowed[line, 0] = True
        if row.labels is not None:
            labels[line, row.second : row.second + len(row.labels)] = row.labels
    some = [rows[i] for i in chosen]
    numbers = [np.array([getattr(r, k) for r in some]) for k in ("y", "start", "end", "weight")]
    tensors = [torch.from_numpy(a) for a in (ids, mask, types, labels, allowed, *numbers)]
    return [t.pin_memory().to(DEVICE, non_blocking=True) for t in tensors] if DEVICE == "cuda" else tensors


def ahead(make: Callable[[np.ndarray], list[torch.Tensor]], plan: Sequence[np.ndarray]) -> Iterator[list[torch.Tensor]]:
    """Batches made by other threads while the device works."""
    with ThreadPoolExecutor(4) as pool:
        waiting: deque = deque()
        for chosen in plan:
            waiting.append(pool.submit(make, chosen))
            if len(waiting) > 12:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


Loss = Callable[[CrossEncoder, list[torch.Tensor]], torch.Tensor]


def losses(model: CrossEncoder, batch: list[torch.Tensor]) -> torch.Tensor:
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        logit, marks = model(*batch[:3])
    return missed(logit.float(), marks.float(), batch)


def missed(logit: torch.Tensor, marks: torch.Tensor, batch: list[torch.Tensor]) -> torch.Tensor:
    """How far from what people or rules say."""
    labels, allowed, y, start, end, weight = batch[3:]
    weight = weight.float()
    loss = (F.binary_cross_entropy_with_logits(logit, y.float() * 0.96 + 0.02, reduction="none") * weight).sum()
    known = start >= 0
    closed = marks.masked_fill(~allowed[..., None], -1e4)
    spans = sum(F.cross_entropy(closed[..., i], at.clamp(min=0), reduction="none") for i, at in ((0, start), (1, end)))
    loss = loss + 0.4 * (spans * known * weight).sum()
    seen = labels >= 0
    token = F.binary_cross_entropy_with_logits(marks[..., 2], labels.clamp(min=0), reduction="none")
    loss = loss + 0.7 * ((token * seen).sum(1) / seen.sum(1).clamp(min=1) * weight).sum()
    return loss / weight.sum()


@dataclass(frozen=True, slots=True)
class Plan:
    """How to train: what each epoch sees, and at what pace."""

    epochs: int
    rate: float
    tokens: int  # of a batch
    seed: int
    label: str


def fit(
    model: CrossEncoder,
    rows: Sequence[Encoded],
    epoch_rows: Callable[[int], np.ndarray],
    plan: Plan,
    loss_of: Loss = losses,
) -> None:
    """AdamW with warm-up and linear decay; the model ends as the moving average of its last weights."""
    torch.manual_seed(plan.seed)
    rng = np.random.default_rng(plan.seed)
    steps = [b for e in range(plan.epochs) for b in batches(rows, epoch_rows(e), plan.tokens, rng)]
    weights = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in weights if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in weights if p.ndim <= 1], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups, lr=plan.rate, betas=(0.9, 0.98), fused=DEVICE == "cuda")
    warm = max(1, int(0.06 * len(steps)))
    pace = torch.optim.lr_scheduler.LambdaLR(adam, lambda t: min((t + 1) / warm, max(0.02, 1 - t / len(steps))))
    average = [w.detach().clone() for w in weights]
    decay = 1 - min(0.05, 15 / len(steps))
    model.train()
    shown = torch.zeros((), device=DEVICE)
    for batch in ahead(lambda chosen: collate(rows, chosen), steps):
        loss = loss_of(model, batch)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        adam.step()
        pace.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, weights, 1 - decay)
            shown.lerp_(loss.detach(), 0.02)
    with torch.no_grad():
        torch._foreach_copy_(weights, average)
    log(f"{plan.label}: {len(steps)} steps, loss {float(shown):.3f}")


@torch.no_grad()
def predict(model: CrossEncoder, rows: Sequence[Encoded], tokens: int = 65536) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits of the pairs, and (tokens of the passage + 1, 3) logits each: the first line is that of "no answer"."""
    model.eval()
    logits, marks = np.zeros(len(rows), np.float32), [np.zeros((0, 3), np.float32)] * len(rows)
    plan = batches(rows, np.arange(len(rows)), tokens, None)
    for chosen, batch in zip(plan, ahead(lambda c: collate(rows, c), plan), strict=True):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            logit, mark = model(*batch[:3])
        logits[chosen] = logit.float().cpu().numpy()
        table = mark.float().cpu().numpy()
        for line, i in enumerate(chosen):
            row = rows[i]
            marks[i] = np.concatenate([table[line, :1], table[line, row.second : len(row.ids) - 1]])
    return logits, marks


@torch.no_grad()
def embed(model: CrossEncoder, texts: Sequence[str], tok: Tokenizer) -> torch.Tensor:
    """Unit vectors by mean pooling, as the untrained encoder was made for."""
    model.eval()
    tok.enable_truncation(192)
    encoded = [
        Encoded(np.array(e.ids, np.int32), len(e.ids), 0, 0, 0, None, 1.0) for e in tok.encode_batch(list(texts))
    ]
    out = torch.zeros(len(texts), 384, dtype=torch.float16, device=DEVICE)
    for chosen in batches(encoded, np.arange(len(encoded)), 131072, None):
        ids, mask, types, *_ = collate(encoded, chosen)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            hidden = model.encoder(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        mean = (hidden.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        out[torch.from_numpy(chosen).to(DEVICE)] = F.normalize(mean, dim=-1).half()
    return out


def state_of(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: value.detach().float().cpu().numpy() for name, value in model.state_dict().items()}
