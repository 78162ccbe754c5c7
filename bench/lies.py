"""True and false sentences about three corpora that no rule was made on: a vendor's documentation, two articles of
Wikipedia, pages of American authorities.

Owns the passages and which edits are tried on them (`bench.edits`). Neither the word rules nor the verifier's training
prose had these texts. The first two sentences of their paragraphs were looked at while the verifier was given its
powers; so only later ones are told here. Two holes in the rules that these showed were closed after the first report
(docs/decisions/0018-verifier.md has both figures). Never judges.
"""

import gzip
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.claims import DATA, SEED, read
from bench.edits import FALSE, INVENTED, TRUE
from chapterverse.grounding import Passage
from chapterverse.text import sentences

PARAGRAPHS: Final = 120  # of a corpus
_LOOKED_AT: Final = 2  # sentences of a paragraph
_FENCED = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])")
_MARKUP = re.compile(r"[|<>{}=#]|http")
_ARTICLES: Final = ("Warsaw", "European_Union_law")  # of SQuAD: the two that were kept apart


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence that a model may say, and the passages that it was shown."""

    corpus: str
    kind: str
    text: str
    passages: tuple[Passage, ...]
    true: bool


def told() -> Iterator[Told]:
    """Every edit of up to two sentences of some paragraphs of each corpus."""
    for corpus, paragraphs in corpora().items():
        rng = random.Random(f"{SEED}|{corpus}|told")
        for at in rng.sample(range(1, len(paragraphs) - 1), min(PARAGRAPHS, len(paragraphs) - 2)):
            around = (paragraphs[at], paragraphs[at - 1], paragraphs[at + 1])
            passages = tuple(Passage(number, text) for number, text in enumerate(around, start=1))
            mine, near = whole(around[0]), [one for text in around for one in whole(text)]
            for sentence in mine[_LOOKED_AT : _LOOKED_AT + 2]:
                for true, edits in ((True, TRUE), (False, FALSE | INVENTED)):
                    others = [one for one in (mine if true else near) if one != sentence]
                    for kind, edit in edits.items():
                        said = edit(sentence, others, rng)
                        if said and (true or said not in near):
                            yield Told(corpus, kind, said, passages, true)


def corpora() -> dict[str, list[str]]:
    """Paragraphs of prose by corpus, in the order of the book."""
    documentation = [block for row in read("anthropic_docs_qa/chunks.jsonl.gz") for block in _blocks(row["text"])]
    with gzip.open(DATA / "squad2" / "dev_a.json.gz", "rt", encoding="utf-8") as file:
        articles = [one for one in json.load(file)["data"] if one["title"] in _ARTICLES]
    wikipedia = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    authorities = [line for row in read("doc2dial/docs_a.jsonl.gz") for line in row["text"].split("\n")]
    found = {"documentation": documentation, "Wikipedia": wikipedia, "authorities": authorities}
    return {
        name: [text for text in texts if len(whole(text)) >= 2 and not _MARKUP.search(text)]
        for name, texts in found.items()
    }


def whole(text: str) -> list[str]:
    """The sentences of a paragraph that are whole sentences."""
    found = [text[start:end] for start, end in sentences(text)]
    return [one for one in found if re.fullmatch(r"[A-Z`].{25,240}\.", one) and len(one.split()) >= 6]


def _blocks(text: str) -> list[str]:
    return [_LINK.sub(r"\1", " ".join(block.split())) for block in re.split(r"\n\s*\n", _FENCED.sub("\n\n", text))]
