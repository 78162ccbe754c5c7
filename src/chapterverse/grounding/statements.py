"""What a passage states: its sentences, and the rows of its tables read as sentences, ready to be compared.

Owns the clauses of a statement and what its head points back to. Never judges a claim. Every statement keeps its
place in the passage, so that evidence can be quoted word for word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from chapterverse.grounding.lexicon import (
    ASIDES,
    AUXILIARIES,
    CONDITIONS,
    DETERMINERS,
    DOUBTS,
    DROPPABLE,
    NOT_ADVERBS,
    POINTERS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    STRICT,
    VERBS,
)
from chapterverse.grounding.words import Token, tokens
from chapterverse.text import sentences

Form = Literal["sentence", "item", "row", "code"]
Head = Literal["", "pronoun", "pointer", "person", "there"]
Opening = Literal["subject", "verb", "condition", "relative", "aside", "preposition", "participle"]

_BREAK = re.compile(r"[,;:\[\]]|[—–]|\s-\s|[.!?]\s|\|")
_JOINS = frozenset({"and", "but", "or", "yet", "so", "nor"})
_LIGHT = _JOINS | {"also", "however", "moreover", "furthermore", "additionally", "finally", "overall"}
_CUTS = frozenset({"because", "whereas", "although", "though", "which"})
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<words>.*)")
_ITEM = re.compile(r"(?:[-*+•]|\(?\d{1,3}[.)])[ \t]+")
_RULE = re.compile(r"[|:\-\s]+")
_LEAD = 3  # content words at the head of a sentence that may name its subject


@dataclass(frozen=True, slots=True)
class Clause:
    """The tokens between two breaks, and what they begin with. A clause goes on behind a bracket inside it."""

    places: tuple[int, ...]
    opening: Opening
    first: str = ""  # its first word that is no conjunction
    joined: bool = False  # begins with a conjunction
    bracketed: bool = False
    announced: bool = False  # stands behind a colon

    @property
    def start(self) -> int:
        """Where its first token is."""
        return self.places[0]

    @property
    def last(self) -> int:
        """Where its last token is."""
        return self.places[-1]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a passage, `text[start:end]`, with the tokens that it consists of."""

    start: int
    end: int
    form: Form
    tokens: tuple[Token, ...]
    clauses: tuple[Clause, ...]
    clause_of: tuple[int, ...]  # by token
    places: dict[str, tuple[int, ...]] = field(repr=False)  # key -> where its tokens are
    head: Head  # of its main clause
    known: frozenset[str]  # keys of the headings above it
    pairs: frozenset[tuple[str, str]]  # neighbours among them, for names such as ROS 2
    lead: frozenset[str]  # keys of what it seems to be about
    first: bool  # stands directly under its heading
    points_back: bool  # begins with a word for something that was named before it


@lru_cache(maxsize=256)  # some 80 kB each
def statements(text: str, context: str = "") -> tuple[Statement, ...]:
    """The statements of a passage in order. Headings state nothing; they are known to what stands under them."""
    return tuple(_read(text, context))


@lru_cache(maxsize=256)
def vocabulary(text: str, context: str = "") -> frozenset[str]:
    """The keys of everything that a passage states."""
    return frozenset(key for statement in statements(text, context) for key in (*statement.places, *statement.known))


def _read(text: str, context: str) -> Iterator[Statement]:
    above = [context]
    first = True
    fenced = False
    denied = False  # "Never do this:", and the items under it
    header: list[str] = []
    for start, end in sentences(text):
        line = text[start:end]
        cells: list[str] = []
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        elif fenced:
            yield _statement(line, (start, end), "code", above, first)
        elif heading := _HEADING.fullmatch(line):
            above, first = [context, heading["words"]], True
            continue
        elif line.startswith("|"):
            cells = [] if _RULE.fullmatch(line) else [cell.strip() for cell in line.strip("|").split("|")]
            for reading in _readings(header, cells):
                yield _statement(reading, (start, end), "row", above, first)
        elif not line.endswith("?"):
            item = _ITEM.match(line)
            at = start + item.end() if item else start
            if not item:
                denied = line.endswith(":") and _denies(line)
            if not (item and (denied or _denies(above[-1]))):
                yield _statement(text[at:end], (at, end), "item" if item else "sentence", above, first)
        header = (header or cells) if line.startswith("|") else []
        first = False


def _denies(announcement: str) -> bool:
    """Whether what stands under a line is said not to be so, or to be so only sometimes."""
    return any(key in STRICT or key in DOUBTS for token in tokens(announcement) for key in token.keys)


def _readings(header: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    """A row of a table as sentences: each cell under its head, said of the row's first cell."""
    if cells:
        yield ", ".join(cells)
    if len(header) == len(cells) > 1:
        for head, cell in zip(header[1:], cells[1:], strict=True):
            yield f"{cells[0]} {head} {cell}"
            yield f"{header[0]} {cells[0]} {head} {cell}"
            yield f"{head} {cells[0]} {cell}"


def _statement(text: str, span: tuple[int, int], form: Form, above: Sequence[str], first: bool) -> Statement:
    found = tuple(tokens(text))
    parts = tuple(clauses(found))
    clause_of = [0] * len(found)
    for number, part in enumerate(parts):
        for place in part.places:
            clause_of[place] = number
    places: dict[str, list[int]] = {}
    for at, token in enumerate(found):
        for key in token.keys:
            places.setdefault(key, []).append(at)
    known, pairs = _headings(tuple(above))
    return Statement(
        start=span[0],
        end=span[1],
        form=form,
        tokens=found,
        clauses=parts,
        clause_of=tuple(clause_of),
        places={key: tuple(where) for key, where in places.items()},
        head=head(found, parts),
        points_back=points_back(found),
        known=known,
        pairs=pairs,
        lead=frozenset(_lead(_main(found, parts))),
        first=first,
    )


@lru_cache(maxsize=512)
def _headings(above: tuple[str, ...]) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Keys of the headings above a statement, and their neighbours; all statements under them share these."""
    headings = [[token for token in tokens(heading) if token.claims] for heading in above]
    known = (key for heading in headings for token in heading if token.kind == "word" for key in token.keys)
    neighbours = (pair for heading in headings for pair in pairwise(heading))
    return frozenset(known), frozenset(
        (one, other) for left, right in neighbours for one in left.keys for other in right.keys
    )


def head(found: Sequence[Token], parts: Sequence[Clause]) -> Head:
    """What the main clause of a sentence begins with, where that names nothing by itself."""
    return _head(_main(found, parts))


def _main(found: Sequence[Token], parts: Sequence[Clause]) -> Sequence[Token]:
    main = next((part for part in parts if part.opening in ("subject", "verb")), None)
    return [found[place] for place in main.places] if main else found


def points_back(found: Sequence[Token]) -> bool:
    """Whether a sentence begins with a word for something that was named before it."""
    return _head(found) in ("pronoun", "pointer")


def _head(found: Sequence[Token]) -> Head:
    first = next(
        (token for token in found if token.lower not in _LIGHT and token.lower not in ("the", "a", "an")), None
    )
    lower = first.lower if first else ""
    if lower in PRONOUNS:
        return "pronoun"
    if lower in POINTERS:
        return "pointer"
    if lower in ("you", "we", "i"):
        return "person"
    return "there" if lower in ("there", "here") else ""


def _lead(found: Sequence[Token]) -> Iterator[str]:
    """Keys of the first noun phrase, as far as one can tell: until an article, a preposition or an auxiliary."""
    taken = 0
    for token in found:
        if token.content:
            yield from token.keys
            taken += 1
        elif taken and (token.lower in DETERMINERS or token.lower in PREPOSITIONS or token.lower in AUXILIARIES):
            return
        if taken == _LEAD:
            return


def clauses(found: Sequence[Token]) -> list[Clause]:
    """Cut a row of tokens where a clause may be left out or put elsewhere: at punctuation, and before a conjunction
    that a verb follows. What stands in brackets is a clause of its own."""
    parts: list[list[int]] = [[]]
    bracketed: set[int] = set()  # ids of parts
    opened: list[list[int]] = []  # parts that a bracket interrupts
    current = parts[0]
    for at, token in enumerate(found):
        for sign in re.findall(r"[()]", token.gap):
            if sign == "(":
                opened.append(current)
                current = []
                parts.append(current)
            elif opened:
                current = opened.pop()
        if current and _cut(found, at):
            current = []
            parts.append(current)
        if opened:
            bracketed.add(id(current))
        current.append(at)
    made = [_clause(found, part, id(part) in bracketed) for part in parts if part]
    return sorted(made, key=lambda clause: clause.start)


def _cut(found: Sequence[Token], at: int) -> bool:
    token = found[at]
    if _BREAK.search(token.gap):
        return at > 0
    if token.lower in _CUTS:
        return True
    joins = token.lower in _JOINS and token.lower not in ("yet", "so")  # "does not yet have" is one predicate
    return joins and at + 1 < len(found) and is_verb(found, _skip_adverbs(found, at + 1))


def _clause(found: Sequence[Token], places: Sequence[int], bracketed: bool) -> Clause:
    head = [at for at in places if found[at].lower not in _LIGHT]
    joined = found[places[0]].lower in _JOINS
    if not head:
        return Clause(tuple(places), "aside", "", joined, bracketed)
    at, end = head[0], places[-1] + 1
    lower = found[at].lower
    first = min(_skip_adverbs(found, at), end - 1)
    opening: Opening = "subject"
    if lower in CONDITIONS:
        opening = "condition"
    elif lower in RELATIVES and at > 0:
        opening = "relative"
    elif lower in ASIDES:
        opening = "aside"
    elif lower in PREPOSITIONS:
        opening = "preposition"
    elif is_verb(found, first):
        opening = "verb"
    elif lower.endswith(("ing", "ed")) and found[at].kind == "word" and at > 0:
        opening = "participle"
    return Clause(tuple(places), opening, lower, joined, bracketed, ":" in found[places[0]].gap)


def _skip_adverbs(found: Sequence[Token], at: int) -> int:
    while at + 1 < len(found) and is_adverb(found[at]):
        at += 1
    return at


def is_adverb(token: Token) -> bool:
    """Whether a token may stand before a verb without being its subject."""
    return token.kind == "word" and (
        token.lower in DROPPABLE or (token.lower.endswith("ly") and token.lower not in NOT_ADVERBS)
    )


def is_verb(found: Sequence[Token], at: int) -> bool:
    """Whether a clause that begins with this token begins with its verb."""
    token = found[at]
    if token.kind not in ("word", "guard"):
        return token.lower in AUXILIARIES
    return token.lower in AUXILIARIES or any(key.lstrip("!") in VERBS for key in token.keys)
