"""A BERT encoder with two heads: one logit for the pair, one for each token. Torch is for training only."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 384, 12, 1536, 30522, 512


class Layer(nn.Module):
    """One transformer layer, normalised after each half as BERT is."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.dropout = dropout

    def forward(self, x: Any, mask: Any, export: bool) -> Any:
        batch, length, _ = x.shape
        q, k, v = (
            part(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        if export:
            scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(WIDTH // HEADS) + mask
            y = torch.matmul(torch.softmax(scores, dim=-1), v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.transpose(1, 2).reshape(batch, length, WIDTH)
        x = self.n1(x + F.dropout(self.o(y), self.dropout, self.training))
        return self.n2(x + F.dropout(self.down(F.gelu(self.up(x))), self.dropout, self.training))


class SectionReader(nn.Module):
    """The tables of words, positions and types do not move in training: they stay as they are stored."""

    def __init__(self, layers: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions, self.types = nn.Embedding(POSITIONS, WIDTH), nn.Embedding(2, WIDTH)
        for table in (self.words, self.positions, self.types):
            table.weight.requires_grad_(False)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(layers))
        self.pool, self.pair = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.token = nn.Linear(WIDTH, 1)

    def encode(self, words: Any, attended: Any, types: Any, export: bool = False) -> Any:
        places = torch.arange(words.shape[1], device=words.device)
        x = self.norm(words + self.types(types) + self.positions(places)[None])
        mask = (1.0 - attended[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask, export)
        return x

    def heads(self, x: Any) -> tuple[Any, Any]:
        return self.pair(torch.tanh(self.pool(x[:, 0]))).squeeze(-1), self.token(x).squeeze(-1)

    def forward(self, ids: Any, attended: Any, types: Any) -> tuple[Any, Any]:
        return self.heads(self.encode(self.words(ids), attended, types))


_NAMES = (
    ("embeddings.word_embeddings", "words"),
    ("embeddings.position_embeddings", "positions"),
    ("embeddings.token_type_embeddings", "types"),
    ("embeddings.LayerNorm", "norm"),
    ("encoder.layer.", "layers."),
    ("attention.self.query", "q"),
    ("attention.self.key", "k"),
    ("attention.self.value", "v"),
    ("attention.output.dense", "o"),
    ("attention.output.LayerNorm", "n1"),
    ("intermediate.dense", "up"),
    ("output.dense", "down"),
    ("output.LayerNorm", "n2"),
)


def start_weights(file: Path) -> dict[str, Any]:
    """Weights of a packed BERT (int8 rows and their scales) under our names."""
    packed = np.load(file)
    found: dict[str, Any] = {}
    for key in packed.files:
        if key.endswith("|s"):
            continue
        value = packed[key].astype(np.float32)
        if key.endswith("|q"):
            value *= packed[key[:-2] + "|s"]
        name = key.removesuffix("|q")
        for theirs, ours in _NAMES:
            name = name.replace(theirs, ours)
        if "position_ids" not in name:
            found[name] = torch.tensor(value)
    return found
