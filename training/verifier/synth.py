"""True and false statements by rule from plain sentences.

Owns how a sentence of a passage is said again in other words, and how it is made false. Text in, rows out.
"""

import random
import re
from collections.abc import Iterator, Sequence

from training.edits import contained, damage, reword, surroundings
from training.prose import Passage
from training.rows import Row, spans_of

_LEAD = re.compile(
    r"^(?:However|Additionally|In addition|Moreover|Furthermore|Also|Note that|For example|Therefore|Thus),?\s+"
)
_FRONT = re.compile(
    r"^(If|When|To|Once|Because|By|For|In|After|Before|With|On|As|While|Unless|Since)\b([^,]{6,110}), (.+)([.!])$"
)
_BACK = re.compile(r"^([^,]{15,}?) (if|when|because|unless|while) ([^,]{8,})\.$")
_EXTRA = re.compile(r", (?:which|such as|including|for example|like) [^,.]{5,90}(?=[,.])|\s*\([^()]{3,80}\)")
_GOOD = re.compile(r"^[A-Z`].{28,320}[.!]$")


def usable(sentence: str) -> bool:
    letters = sum(map(str.isalpha, sentence))
    return (
        bool(_GOOD.match(sentence))
        and "|" not in sentence
        and "http" not in sentence
        and letters > 0.68 * len(sentence)
    )


def say_again(sentence: str, rng: random.Random) -> str:
    """The same in other words or another order."""
    said = sentence
    if rng.random() < 0.5:
        said = _LEAD.sub("", said)
    if rng.random() < 0.4:
        said = _EXTRA.sub("", said)
    if (front := _FRONT.match(said)) and rng.random() < 0.5:
        said = f"{front[3]} {front[1].lower()}{front[2]}{front[4]}"
    elif (back := _BACK.match(said)) and rng.random() < 0.4:
        said = f"{back[2].capitalize()} {back[3]}, {back[1][0].lower()}{back[1][1:]}."
    said = reword(said, rng, 3)
    if rng.random() < 0.12:
        said = said.replace("`", "")
    return said[:1].upper() + said[1:]


def framed(sentence: str, heading: str, rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.04 and heading:
        return f"Regarding {heading}, {sentence[0].lower()}{sentence[1:]}"
    if draw < 0.08:
        return (
            rng.choice(("According to the text, ", "The documentation says that ")) + sentence[0].lower() + sentence[1:]
        )
    return sentence


def page_rows(pages: Sequence[Passage], rng: random.Random, per_passage: int) -> Iterator[Row]:
    """Rows from the passages of one page, given in their order."""
    for number, passage in enumerate(pages):
        beside = [s for p in pages[max(0, number - 3) : number + 4] if p is not passage for s in p.sentences]
        near = surroundings([*passage.sentences, *beside])
        places = [i for i, s in enumerate(passage.sentences) if usable(s)]
        rng.shuffle(places)
        for place in places[:per_passage]:
            yield from _rows_of(passage, place, beside, near, rng)


def _rows_of(passage: Passage, place: int, beside: Sequence[str], near, rng: random.Random) -> Iterator[Row]:
    lead = [f"{passage.heading}."] if rng.random() < 0.5 else []
    parts = [*lead, *passage.sentences]
    place += len(lead)
    text, spans, sentence = " ".join(parts), spans_of(parts), parts[place]
    base = say_again(sentence, rng) if rng.random() < 0.8 else sentence
    source = passage.source
    said, evidence = base, (spans[place],)
    other = rng.randrange(len(lead), len(parts))
    if rng.random() < 0.15 and other != place and usable(parts[other]):
        said = f"{base[:-1]}{rng.choice((', and ', '; ', '. Also, '))}{parts[other][0].lower()}{parts[other][1:]}"
        evidence = (*evidence, spans[other])
    yield Row("stated", source, framed(said, passage.heading, rng), text, 1, None, evidence, "true")
    changed = damage(base, near, rng)
    if changed and changed[0].lower() not in text.lower():
        wrong = changed[0]
        if rng.random() < 0.1 and other != place and usable(parts[other]):
            wrong = f"{parts[other][:-1]}, and {wrong[0].lower()}{wrong[1:]}"
        yield Row("stated", source, framed(wrong, passage.heading, rng), text, 0, kind=changed[1])
    draw = rng.random()
    rest = " ".join(p for i, p in enumerate(parts) if i != place)
    if draw < 0.2 and len(rest) > 120 and contained(base, rest) < 0.7:
        yield Row("stated", source, base, rest, 0, kind="removed")
    elif draw < 0.4 and beside:
        stranger = rng.choice(beside)
        if usable(stranger) and contained(stranger, text) < 0.7:
            yield Row("stated", source, say_again(stranger, rng), text, 0, kind="neighbour")


def damaged(rows: Sequence[Row], seed: int) -> Iterator[Row]:
    """Real statements that are borne out, made false."""
    for row in rows:
        rng = random.Random(f"{seed}|{row.id}|{row.text}")
        if row.y and "?" not in row.text and len(row.text.split()) > 4:
            changed = damage(row.text, surroundings([row.passage]), rng)
            if changed and changed[0].lower() not in row.passage.lower():
                yield Row(
                    f"damaged {row.name}", row.group, changed[0], row.passage, 0, kind=changed[1], id=row.id, made=True
                )
