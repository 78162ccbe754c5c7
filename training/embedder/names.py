"""Names of weights: as BERT models are published, and as `train.py` has them."""

NAMES = (
    ("bert.", ""),
    ("embeddings.word_embeddings", "tok"),
    ("embeddings.position_embeddings", "pos"),
    ("embeddings.token_type_embeddings", "typ"),
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


def renamed(name: str) -> str:
    """A weight's published name as it is here."""
    for theirs, ours in NAMES:
        name = name.replace(theirs, ours)
    return name
