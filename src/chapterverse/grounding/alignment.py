"""Whether a row of words can be had from a statement by leaving out whole clauses and moving them.

Owns the comparison of one claim with one statement. Every word of the claim that says something must stand in the
statement, in its order; a clause may be moved as a whole; a clause that is used is used whole, but for a few
adverbs; a condition is never left out; a predicate keeps its subject. Never decides where to look, and
knows nothing of passages.

    A watchdog stops the robot when commands stop arriving.
    When commands stop arriving, a watchdog stops the robot.     moved: borne out
    A watchdog stops the robot.                                  condition lost: not borne out
    Commands stop arriving when a watchdog stops the robot.      two stretches that cross: not borne out
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from chapterverse.grounding.lexicon import (
    ADDABLE,
    CONDITIONS,
    DOUBTS,
    DROPPABLE,
    LOOSE,
    LOSABLE,
    PAST,
    POINTERS,
    PREPOSITIONS,
    PRESENT,
    STRICT,
    SYNONYMS,
)
from chapterverse.grounding.statements import Clause, Statement, clauses, head, is_adverb, is_verb
from chapterverse.grounding.words import Token

_PAUSE = re.compile(r"[,;:()—–]|\s-\s")
_LEADING = frozenset({"if", "when", "whenever", "once", "unless", "where", "while", "after", "before"})
_LABELLED = re.compile(r"[:()]")
_MOVERS = CONDITIONS | PREPOSITIONS | {"because", "since", "although", "though"}  # begin what may stand elsewhere
_GOVERNING = frozenset({"of", "in", "on", "at", "for", "with", "as", "to"})
_LOOSE = frozenset(frozenset(pair.split()) for pair in LOOSE)
_TURN = 50  # cost of going back in the statement, above any gap inside it


@dataclass(frozen=True, slots=True)
class Fit:
    """How a claim lies in a statement."""

    filled: tuple[int, ...] = ()  # tokens of the claim that the statement only points back to
    why: str = ""  # what broke it; empty when it holds

    def __bool__(self) -> bool:
        return not self.why


def fit(claim: Sequence[Token], statement: Statement, subject: frozenset[str] = frozenset()) -> Fit:
    """Compare a claim with a statement. `subject` holds the keys of what the statement points back to."""
    placed = _place(claim, statement, subject)
    if isinstance(placed, str):
        return Fit(why=placed)
    mine = head(claim, clauses(claim))
    if mine != statement.head and (mine or statement.head in ("pronoun", "pointer")) and not placed.filled:
        return Fit(why="it speaks of something else")
    path = best_path(placed.options)
    if not path:
        return Fit(why="says nothing")
    why = (
        wording_fault(claim, path, statement)
        or order_fault(claim, path, statement)
        or jump_fault(claim, path, statement)
        or _losses(path, statement)
    )
    return Fit(placed.filled, why)


@dataclass(frozen=True, slots=True)
class _Placed:
    options: list[tuple[int, tuple[int, ...]]]  # index of a claim's token -> where it may stand in the statement
    filled: tuple[int, ...]


def _place(claim: Sequence[Token], statement: Statement, subject: frozenset[str]) -> _Placed | str:
    """Find for each token of the claim where it stands; the first that stands nowhere is the answer."""
    options: list[tuple[int, tuple[int, ...]]] = []
    filled: list[int] = []
    seen: dict[str, int] = {}
    naming = bool(subject)  # the claim may begin with the name of what the statement points back to
    for at, token in enumerate(claim):
        if not token.claims:
            if token.lower == "to" and at + 1 < len(claim) and any(other.lower == "from" for other in claim):
                where = tuple(place for place, other in enumerate(statement.tokens) if other.lower == "to")
                options.extend([(at, where)] if where else [])
            continue
        keys = token.keys[:1] if token.kind == "code" else token.keys
        naming = naming and any(key in subject for key in keys)
        if naming:
            filled.append(at)
            continue
        where = tuple(sorted({place for key in keys for place in statement.places.get(key, ())}))
        times = seen[keys[0]] = seen.get(keys[0], 0) + 1
        numbered = at + 1 < len(claim) and claim[at + 1].kind in ("number", "code")
        if where and times > len(where) and token.kind == "word" and numbered:
            continue  # said again: "category 0 or category 1" of "category 0 or 1"
        if where:
            options.append((at, where))
        elif _known(token, claim[at - 1] if at else None, statement, subject, bool(filled)):
            filled.append(at)
        elif token.lower not in ADDABLE or _denies(claim):
            return f"“{token.lower}” is not in it"
    if filled and statement.form == "sentence" and options and filled[-1] > options[0][0]:
        return "a word from elsewhere stands inside it"
    return _Placed(options, tuple(filled))


def _denies(claim: Sequence[Token]) -> bool:
    return any(key in STRICT for token in claim for key in token.keys)


def _known(token: Token, before: Token | None, statement: Statement, subject: frozenset[str], going: bool) -> bool:
    """Whether a word that the statement lacks is what it points back to, or stands in the headings above a row."""
    if any(key in subject for key in token.keys):
        return True
    if statement.form == "sentence":
        return False
    if token.kind == "word":
        return any(key in statement.known for key in token.keys)
    # The 2 of ROS 2: a number of a heading counts only behind the word that it belongs to.
    return (
        going
        and before is not None
        and any((one, other) in statement.pairs for one in before.keys for other in token.keys)
    )


def best_path(options: Sequence[tuple[int, tuple[int, ...]]]) -> list[tuple[int, int]]:
    """Choose one place for each token so that the claim goes forward with few turns and small gaps.

    Takes time in proportion to the places, because a word that is repeated hundreds of times has hundreds."""
    steps: list[dict[int, tuple[int, int]]] = []  # for each token: its places -> cost up to there, place before
    for _, places in options:
        before = [(last, cost) for last, (cost, _) in steps[-1].items()] if steps else []
        turns = list(accumulate(((cost + _TURN, last) for last, cost in reversed(before)), _cheaper))[::-1]
        step: dict[int, tuple[int, int]] = {}
        gain: tuple[int, int] | None = None  # cheapest way from the left, less the place that it reaches
        left = 0  # of the places before, how many stand to the left
        for place in places:
            while left < len(before) and before[left][0] < place:
                last, cost = before[left]
                gain = min(gain or (cost - last, last), (cost - last, last), key=_cost)
                left += 1
            turn = left + (left < len(before) and before[left][0] == place)
            ways = [(gain[0] + place - 1, gain[1])] if gain else []
            ways += turns[turn : turn + 1]
            if ways or not steps:
                step[place] = min(ways, key=_cost, default=(0, -1))
        if not step:
            return []
        steps.append(step)
    path: list[tuple[int, int]] = []
    end = min(steps[-1], key=lambda place: steps[-1][place][0]) if steps else -1
    for (at, _), step in zip(reversed(options), reversed(steps), strict=True):
        path.append((at, end))
        end = step[end][1]
    return path[::-1]


def _cost(way: tuple[int, int]) -> int:
    return way[0]


def _cheaper(right: tuple[int, int], left: tuple[int, int]) -> tuple[int, int]:
    return left if left[0] <= right[0] else right


def wording_fault(claim: Sequence[Token], path: Sequence[tuple[int, int]], statement: Statement) -> str:
    """What is wrong with the small words around those that match, or nothing."""
    mine, theirs = {token.lower for token in claim}, {token.lower for token in statement.tokens}
    for one, other in ((PAST, PRESENT), (PRESENT, PAST)):
        if mine & one and not mine & other and theirs & other and not theirs & one:
            return "it is said of another time"
    denied = _denies(claim)
    for at, place in path:
        token, same = claim[at], statement.tokens[place]
        if denied and token.kind == "guard" and token.keys[0] != same.keys[0]:
            return "what may not be so is not what cannot be so"
        left, right = _preposition(claim, at), _preposition(statement.tokens, place)
        if left and right and left != right and frozenset((left, right)) not in _LOOSE:
            return f"“{left}” stands for “{right}”"
    return ""


def _preposition(tokens: Sequence[Token], at: int) -> str:
    """The free preposition that governs a token, past an article."""
    while at > 0 and tokens[at - 1].kind == "free":
        at -= 1
        if tokens[at].lower in _GOVERNING:
            return tokens[at].lower
    return ""


def order_fault(claim: Sequence[Token], path: Sequence[tuple[int, int]], statement: Statement) -> str:
    """What is wrong with the order of the words, or nothing."""
    blocks = [[path[0]]]
    for (_, last), (at, place) in pairwise(path):
        if place > last:
            blocks[-1].append((at, place))
            continue
        if not _may_turn(claim, at, place, statement):
            return "its words stand in another order"
        blocks.append([(at, place)])
    spans = sorted((block[0][1], block[-1][1]) for block in blocks)
    # A number is no clause: "December 16, 2004" has not its year from elsewhere in the statement.
    bare = any(all(claim[at].kind == "number" for at, _ in block) for block in blocks[1:])
    if bare or len(blocks) > 2 or any(one[1] >= other[0] for one, other in pairwise(spans)):
        return "its words stand in another order"
    return ""


def _may_turn(claim: Sequence[Token], at: int, place: int, statement: Statement) -> bool:
    """Whether a stretch that stands earlier in the statement may begin here: after a pause, or with its connective."""
    start = at
    while start and not claim[start - 1].claims and not _PAUSE.search(claim[start].gap):
        start -= 1
    if _PAUSE.search(claim[start].gap):
        return True
    theirs = place
    while theirs and not statement.tokens[theirs - 1].claims:
        theirs -= 1
    mine = {token.lower for token in claim[start : at + 1] if token.lower in _MOVERS}
    return any(SYNONYMS.get(one.lower, one.lower) in _same(mine) for one in statement.tokens[theirs : place + 1])


def _same(words: set[str]) -> set[str]:
    return {SYNONYMS.get(word, word) for word in words}


def jump_fault(claim: Sequence[Token], path: Sequence[tuple[int, int]], statement: Statement) -> str:
    """What is wrong with a step from one clause into another, or nothing."""
    for (_, last), (at, place) in pairwise(path):
        left, right = statement.clause_of[last], statement.clause_of[place]
        if place < last or left == right:
            continue
        between = [clause for clause in statement.clauses[left + 1 : right] if not clause.bracketed]
        target = statement.clauses[right]
        skipped = any(
            statement.tokens[other].content and statement.tokens[other].lower not in DROPPABLE
            for other in range(last + 1, place)
            if not statement.clauses[statement.clause_of[other]].bracketed
        )
        if not skipped:
            continue
        if _first_content(statement, target) < place:
            return "it joins parts of two clauses"
        if target.opening == "verb" and (
            _aside(last, between, statement) or all(clause.opening != "subject" for clause in between)
        ):
            continue
        if not any(
            _PAUSE.search(token.gap) or token.lower in ("and", "but", "or")
            for token in claim[_before(path, at) + 1 : at + 1]
        ):
            return "it joins parts of two clauses"
        if target.opening == "verb":
            return "a predicate lost its subject"
    return ""


def _aside(last: int, between: Sequence[Clause], statement: Statement) -> bool:
    """Whether what lies between a whole clause and a verb is an apposition: "NITROS, short for …, lets"."""
    return (
        len(between) == 1
        and last == statement.clauses[statement.clause_of[last]].last
        and not any(is_verb(statement.tokens, place) for place in between[0].places)
    )


def _before(path: Sequence[tuple[int, int]], at: int) -> int:
    return max((token for token, _ in path if token < at), default=-1)


def _first_content(statement: Statement, clause: Clause) -> int:
    tokens = statement.tokens
    return next((at for at in clause.places if tokens[at].claims and not is_adverb(tokens[at])), clause.last + 1)


def _losses(path: Sequence[tuple[int, int]], statement: Statement) -> str:
    """What the claim leaves out that it must not, or nothing."""
    used = {place for _, place in path}
    kept = {statement.clause_of[place] for place in used}
    first = min(kept)
    if not any(_is_main(statement.clauses[number], statement) for number in kept):
        others = (clause for number, clause in enumerate(statement.clauses) if number not in kept)
        if any(statement.tokens[place].claims for clause in others for place in clause.places):
            return "the main clause was left out"
    headless = any(token.claims for token in statement.tokens[: statement.clauses[first].start])
    if headless and statement.clauses[first].opening not in ("subject", "condition"):
        return "a predicate lost its subject"
    for number, clause in enumerate(statement.clauses):
        lost = number not in kept
        why = dropped_fault(clause, number, first, statement) if lost else _holes(clause, used, statement)
        if why:
            return why
    return ""


def _is_main(clause: Clause, statement: Statement) -> bool:
    if clause.opening in ("subject", "verb"):
        return True
    spoken = any(is_verb(statement.tokens, place) for place in clause.places[1:])
    return clause.opening in ("preposition", "participle") and spoken


def dropped_fault(clause: Clause, number: int, first: int, statement: Statement) -> str:
    """Whether a clause that was left out as a whole binds what was kept."""
    tokens = [statement.tokens[place] for place in clause.places]
    if clause.opening == "condition":
        # "…, and if it fails, …" binds what follows it, not what stands before it.
        following = statement.clauses[number + 1 : number + 2]
        ahead = any(other.opening == "subject" and not other.joined for other in following)
        leads = clause.joined and clause.first in _LEADING and number > first and ahead
        return "" if leads else "a condition was left out"
    comments = number < first or clause.opening == "relative" or clause.first in POINTERS  # "…, but that is wrong"
    if comments and any(key in DOUBTS for token in tokens for key in token.keys):
        return "it is held to be doubtful"
    if number + 1 == first and statement.clauses[first].announced:
        return "what announces it was left out"
    if number == 0 and clause.opening == "preposition":
        known = all(any(key in statement.known for key in token.keys) for token in tokens if token.content)
        return "" if known else "what it holds for was left out"
    return ""


def _holes(clause: Clause, used: set[int], statement: Statement) -> str:
    """Whether a clause that is used is used whole."""
    tokens = statement.tokens
    end = _predicate(clause, used, statement)
    guards = {key for place in clause.places if place < end for key in tokens[place].keys if key in STRICT}
    strict, denied = bool(guards), bool(guards - {"!all"})
    for place in clause.places:
        token = tokens[place]
        if place >= end or place in used or not token.claims or token.kind == "link":
            continue
        if token.lower in DROPPABLE and not strict:
            continue
        if token.keys[0] in LOSABLE and not denied:
            continue
        return f"“{token.lower}” was left out"
    return ""


def _predicate(clause: Clause, used: set[int], statement: Statement) -> int:
    """Where the predicate begins whose place another one of the same subject has taken, or the end."""
    mine = [place for place in clause.places if place in used]
    after = max(mine) + 1
    onward = any(
        other.opening == "verb" and not used.isdisjoint(other.places)
        for other in statement.clauses
        if other.start > clause.last
    )
    if not onward or after not in clause.places or not is_verb(statement.tokens, after):
        return clause.last + 1
    named = any(statement.tokens[place].content for place in mine)
    spoken = any(is_verb(statement.tokens, place) for place in clause.places if place < after)
    return after if named and not spoken else clause.last + 1


def words_shared(claim: Sequence[Token], statement: Statement) -> float:
    """The share of the claim's content words that the statement has."""
    content = [token for token in claim if token.content]
    if not content:
        return 0.0
    return sum(any(key in statement.places for key in token.keys) for token in content) / len(content)


def cuts(claim: Sequence[Token]) -> list[int]:
    """Where a claim may be read as two: between its clauses, but not behind a label or a bracket."""
    parts = clauses(claim)[1:]
    return [part.start for part in parts if part.joined or not _LABELLED.search(claim[part.start].gap)]
