"""Names of weights: in published BERT models, and in `train.py`."""

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
    """The name of a published weight in `train.py`."""
    for theirs, ours in NAMES:
        name = name.replace(theirs, ours)
    return name
