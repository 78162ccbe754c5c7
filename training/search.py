"""The product's search in torch, for training: the embedder, BM25, and the fused score."""

import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import nn
from training.embedder.names import renamed
from training.packed import Array, unpacked

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, HEADS, INNER = 384, 12, 1536
DEEP = 100  # passages taken from each search


class Layer(nn.Module):
    """One transformer layer, normalised after each half like BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = (
            part(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        dropped = 0.1 if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropped)
        x = self.n1(x + F.dropout(self.o(y.transpose(1, 2).reshape(batch, length, WIDTH)), 0.1, self.training))
        return self.n2(x + F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training))


class Embedder(nn.Module):
    """BERT, mean pooling of its last states, and normalisation to length 1."""

    def __init__(self, words: int, layers: int) -> None:
        super().__init__()
        self.tok, self.pos, self.typ = nn.Embedding(words, WIDTH), nn.Embedding(512, WIDTH), nn.Embedding(2, WIDTH)
        self.tok.weight.requires_grad_(False)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, ids: Any, attended: Any) -> Any:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.tok(ids) + self.typ(torch.zeros_like(ids)) + self.pos(places)[None])
        x = F.dropout(x, 0.1, self.training)
        mask = ((1.0 - attended[:, None, None, :]) * -10000.0).to(x.dtype)
        for layer in self.layers:
            x = layer(x, mask)
        return x


def load(file: Path) -> Embedder:
    """The embedder with weights under their published names or ours."""
    return load_weights({renamed(name): value for name, value in unpacked(file).items() if "pooler" not in name})


def load_weights(weights: dict[str, Array]) -> Embedder:
    """The embedder with weights under our names."""
    found = {name: torch.tensor(value) for name, value in weights.items()}
    layers = 1 + max(int(name.split(".")[1]) for name in found if name.startswith("layers."))
    model = Embedder(found["tok.weight"].shape[0], layers)
    model.load_state_dict(found)
    return model.to(DEVICE)


def tokenizer(file: Path) -> Tokenizer:
    """A tokenizer that neither pads nor truncates."""
    made = Tokenizer.from_file(str(file))
    made.no_padding()
    made.no_truncation()
    return made


def encoded(cutter: Tokenizer, texts: list[str], most: int = 256) -> list[Any]:
    """Tokens of each text, at most `most`."""
    cutter.enable_truncation(most)
    return [np.array(one.ids, np.int64) for one in cutter.encode_batch(texts)]


def vectors(model: Embedder, texts: list[Any]) -> Any:
    """Vectors of encoded texts, computed in one batch."""
    longest = (max(map(len, texts)) + 7) // 8 * 8
    ids, attended = np.zeros((len(texts), longest), np.int64), np.zeros((len(texts), longest), np.float32)
    for row, tokens in enumerate(texts):
        ids[row, : len(tokens)], attended[row, : len(tokens)] = tokens, 1
    mask = torch.from_numpy(attended).to(DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        states = model(torch.from_numpy(ids).to(DEVICE), mask).float()
    return F.normalize((states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True), dim=1)


@torch.no_grad()
def embedded(model: Embedder, texts: list[Any], size: int = 512) -> Any:
    """Vectors of any number of encoded texts. Texts of similar length are computed together."""
    model.eval()
    out = torch.zeros(len(texts), WIDTH, device=DEVICE)
    order = np.argsort([len(tokens) for tokens in texts])
    for start in range(0, len(order), size):
        at = order[start : start + size]
        out[torch.from_numpy(at).to(DEVICE)] = vectors(model, [texts[one] for one in at])
    return out


def bm25(docs: list[str], queries: list[str]) -> Any:
    """BM25 scores of all passages for all questions, over stemmed words."""
    counts = [Counter(_words(doc)) for doc in docs]
    lengths = np.array([sum(one.values()) for one in counts])
    lists: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(counts):
        for word, count in one.items():
            lists[word].append((number, count))
    found = {word: tuple(map(np.array, zip(*some, strict=True))) for word, some in lists.items()}
    scores = np.zeros((len(queries), len(docs)), np.float32)
    for row, query in enumerate(queries):
        for word in set(_words(query)) & found.keys():
            at, count = found[word]
            rare = math.log(1 + (len(docs) - len(at) + 0.5) / (len(at) + 0.5))
            scores[row, at] += rare * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[at] / lengths.mean()))
    return scores


def _words(text: str) -> list[str]:
    return [re.sub(r"(?<=\w{4})(?:ing|ed|es|s)$", "", word) for word in re.findall(r"[a-z0-9_]+", text.lower())]


def fused(meaning: Any, words: Any, weight: float) -> Any:
    """The product's score: both in standard deviations, over the first passages of each search; `weight` is that of
    dense search."""
    out = np.full_like(meaning, -1e9)
    for row in range(len(meaning)):
        at = np.union1d(np.argsort(-meaning[row])[:DEEP], np.argsort(-words[row])[:DEEP])
        one, two = (
            (score[row, at] - score[row, at].mean()) / (score[row, at].std() + 1e-9) for score in (meaning, words)
        )
        out[row, at] = weight * one + (1 - weight) * two
    return out
