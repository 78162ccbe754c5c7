"""A BERT encoder with two heads: one logit for the pair, one for each token. Torch is for training only."""

from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import nn
from training.packed import Array

WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 384, 12, 1536, 30522, 512


class Layer(nn.Module):
    """One transformer layer, normalised after each half like BERT."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.dropout = dropout

    def forward(self, x: Any, mask: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = (
            part(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        y = _attention(q, k, v, mask)
        y = y.transpose(1, 2).reshape(batch, length, WIDTH)
        x = self.n1(x + F.dropout(self.o(y), self.dropout, self.training))
        return self.n2(x + F.dropout(self.down(F.gelu(self.up(x))), self.dropout, self.training))


def _attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Attention. On a CPU the backward pass of torch's own takes three times as long as that of these products."""
    if q.is_cuda:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return torch.softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2) + mask, -1) @ v


class SectionReader(nn.Module):
    """The tables of words, positions and types are not trained: they stay as they are stored."""

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

    @classmethod
    def of(cls, weights: dict[str, Array], dropout: float = 0.1) -> Self:
        """The reader with these weights."""
        layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
        made = cls(layers, dropout)
        made.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        return made

    def states(self, ids: Any, attended: Any, types: Any) -> list[Any]:
        """Return the output of each layer."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.types(types) + self.positions(places)[None])
        mask = (1.0 - attended[:, None, None, :].to(x.dtype)) * -10000.0
        found = []
        for layer in self.layers:
            x = layer(x, mask)
            found.append(x)
        return found

    def heads(self, x: Any) -> tuple[Any, Any]:
        return self.pair(torch.tanh(self.pool(x[:, 0]))).squeeze(-1), self.token(x).squeeze(-1)

    def forward(self, ids: Any, attended: Any, types: Any) -> tuple[Any, Any]:
        return self.heads(self.states(ids, attended, types)[-1])
