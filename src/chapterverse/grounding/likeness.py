"""Whether a claim differs from a statement by its wording alone, as far as rules can tell.

Owns what no trained judge may overrule: numbers, names, identifiers, negations, quantities, conditions, opposites, what
is spoken of, and the order of the words. A claim that is alike is not thereby borne out: plain words may have been
exchanged for others or left out, and whether that changes what is said is for another to judge.
"""

from collections import Counter
from collections.abc import Sequence

from chapterverse.grounding.alignment import best_path, dropped_fault, jump_fault, order_fault, wording_fault
from chapterverse.grounding.lexicon import NEGATING, OPPOSITES, SYNONYMS
from chapterverse.grounding.statements import Statement, clauses, head, is_verb
from chapterverse.grounding.words import Token

_LEAST = 3  # content words that the two must share
_SHARE = 0.5  # of the claim's content words
_OPPOSITES: dict[str, set[str]] = {}  # by key
for _pair in OPPOSITES.split(", "):
    _one, _other = (SYNONYMS.get(word, word) for word in _pair.split())
    _OPPOSITES.setdefault(_one, set()).add(_other)
    _OPPOSITES.setdefault(_other, set()).add(_one)


def is_alike(claim: Sequence[Token], statement: Statement, elsewhere: frozenset[str]) -> bool:
    """Whether only the wording differs. `elsewhere` are the keys of all passages: a word that the statement lacks and
    another sentence has is no other wording, but another thing."""
    present = [(at, where) for at, token in enumerate(claim) if (where := _places(token, statement))]
    content = [at for at, token in enumerate(claim) if token.content]
    shared = sum(claim[at].content for at, _ in present)
    if shared < max(_LEAST, _SHARE * len(content)) or not _same_head(claim, statement):
        return False
    found = {at for at, _ in present}
    missing = [at for at, token in enumerate(claim) if token.claims and at not in found]
    if any(not _is_exchangeable(claim, at, content[0], statement, elsewhere) for at in missing):
        return False
    if _guards(statement.tokens) != _guards(claim):
        return False
    path = best_path(present)
    if not path or not _is_exchange(missing, path, statement):
        return False
    return not (
        wording_fault(claim, path, statement)
        or order_fault(claim, path, statement)
        or jump_fault(claim, path, statement)
        or _loses(path, statement)
    )


def _same_head(claim: Sequence[Token], statement: Statement) -> bool:
    mine = head(claim, clauses(claim))
    return mine == statement.head or (not mine and statement.head not in ("pronoun", "pointer"))


def _places(token: Token, statement: Statement) -> tuple[int, ...]:
    """Where a token that claims something stands in the statement."""
    if not token.claims:
        return ()
    keys = token.keys[:1] if token.kind == "code" else token.keys
    return tuple(sorted({place for key in keys for place in statement.places.get(key, ())}))


def _is_exchangeable(
    claim: Sequence[Token], at: int, first: int, statement: Statement, elsewhere: frozenset[str]
) -> bool:
    """Whether a word that the statement lacks may be another wording: a plain word, not its subject, not what is
    counted or measured, not of another sentence, and not the opposite of what is there."""
    token = claim[at]
    if token.kind != "word" or any(key in elsewhere for key in token.keys):
        return False
    if (at == first and not is_verb(claim, at)) or (at and claim[at - 1].kind == "number"):
        return False
    written = token.keys[-1].removeprefix("`")
    if written != written.lower() and at != first:
        return False  # a name
    return not any(key in statement.places for key in _turned(token))


def _turned(token: Token) -> set[str]:
    """Keys of the words that say the opposite."""
    words = set(token.keys[:-1])
    turned = {other for key in words for other in _OPPOSITES.get(key, ())}
    turned |= {prefix + key for key in words for prefix in NEGATING}
    return turned | {key.removeprefix(prefix) for key in words for prefix in NEGATING if key.startswith(prefix)}


def _is_exchange(missing: Sequence[int], path: Sequence[tuple[int, int]], statement: Statement) -> bool:
    """Whether the statement has a word of its own in the place of each that it lacks: a word more is a claim more."""
    used = {place for _, place in path}
    holes = {place for place, token in enumerate(statement.tokens) if token.kind == "word" and place not in used}
    for at in missing:
        left = max((place for mine, place in path if mine < at), default=-1)
        right = min((place for mine, place in path if mine > at and place > left), default=len(statement.tokens))
        hole = next((place for place in range(left + 1, right) if place in holes), None)
        if hole is None:
            return False
        holes.discard(hole)
    return True


def _guards(found: Sequence[Token]) -> Counter[str]:
    """How often each is said: "No, it cannot" denies twice."""
    return Counter(token.keys[0] for token in found if token.kind == "guard")


def _loses(path: Sequence[tuple[int, int]], statement: Statement) -> bool:
    """Whether a clause was left out that binds what was kept."""
    kept = {statement.clause_of[place] for _, place in path}
    return any(
        dropped_fault(clause, number, min(kept), statement)
        for number, clause in enumerate(statement.clauses)
        if number not in kept
    )
