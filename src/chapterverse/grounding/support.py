"""The deterministic judge: which sentences of the issued passages bear out a claim, word by word.

Owns where to look: single statements first, then the parts of a claim one by one, and what a statement that begins
with "It" points back to. Never calls a model, never guesses: what it cannot show to be borne out is not supported.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from chapterverse.grounding.alignment import cuts, fit, words_shared
from chapterverse.grounding.lexicon import ADDABLE, DETERMINERS, PREPOSITIONS
from chapterverse.grounding.passages import Evidence, Passage, Verdict
from chapterverse.grounding.statements import Statement, clauses, is_verb, points_back, statements, vocabulary
from chapterverse.grounding.words import Token, tokens

# "According to the documentation, …" names no fact; what follows it is the claim.
_SOURCE = (
    r"(?:documentation|docs|book|text|passages?|sources?|selection|selected text|context|chapter|section|page|"
    r"excerpts?)"
)
_FRAME = re.compile(
    r"\s*(?:(?:according to|based on|as (?:stated|described|explained|noted) in|in) (?:the|this|these)"
    rf"(?: (?:provided|given|available|above|cited|following))? {_SOURCE},?\s+"
    rf"|(?:the|this) (?:provided |given )?{_SOURCE} (?:says|states|explains|notes|mentions|describes)(?: that|:)\s+)",
    re.IGNORECASE,
)
_LEAST = 2  # content words that a claim needs
MOST_WORDS = 250  # words of a claim; more are no sentence, and would take long to compare
NEAR = 0.6  # share of the claim's content words in the sentence that may take its place
LIKELY_NEAR = 0.4  # the same, for a claim that a judge finds likely
_NEAR_WORDS = 3
_LONGEST_QUOTE = 500  # characters of a sentence that may take a claim's place


class Rules:
    """Judges by words, numbers, names, code, negation, quantity, condition and order."""

    def judge(self, claim: str, passages: Sequence[Passage]) -> Verdict:
        """Find the evidence for a claim, looking at the passages in the order given."""
        verdict = self._judge(claim, passages)
        said = unframed(claim)
        return self._judge(said, passages) if said != claim and not verdict.supported else verdict

    def _judge(self, claim: str, passages: Sequence[Passage]) -> Verdict:
        words = tokens(claim)
        if sum(token.content for token in words) < _LEAST:
            return Verdict(why="says nothing")
        if len(words) > MOST_WORDS:
            return Verdict(why="is too long for a sentence")
        known = [vocabulary(passage.text, passage.context) for passage in passages]
        for token in words:
            keys = token.keys[:1] if token.kind == "code" else token.keys
            if token.claims and token.lower not in ADDABLE and not any(key in one for key in keys for one in known):
                return Verdict(why=f"“{token.lower}” is in no passage")
        if found := _whole(words, passages):
            return Verdict((found,))
        together = _together(words, passages)
        return Verdict(_join(together)) if together else Verdict(why=_closest_reason(words, passages))


def unframed(claim: str) -> str:
    """A claim without the words that only say where it is from."""
    frame = _FRAME.match(claim)
    return claim[frame.end() :] if frame else claim


def usable(passage: Passage) -> Iterator[tuple[Statement, Statement | None]]:
    """The statements of a passage that may be evidence, each with the one before it. One that points back to a barred
    statement would bring it along."""
    before: Statement | None = None
    after_barred = False
    for statement in statements(passage.text, passage.context):
        barred = any(start < statement.end and statement.start < end for start, end in passage.barred)
        if not barred and not (after_barred and statement.points_back):
            yield statement, before
        before, after_barred = statement, barred


def _subject(statement: Statement, before: Statement | None) -> frozenset[str]:
    """Keys of what a statement that begins with "It" may be about."""
    if not statement.points_back or statement.head != "pronoun":
        return frozenset()
    if statement.first or before is None:
        return statement.known
    return before.lead if not before.points_back else frozenset()


def _whole(claim: Sequence[Token], passages: Sequence[Passage]) -> Evidence | None:
    """The statement that bears out all of a claim; the closest one where there are several."""
    for passage in passages:
        best: tuple[int, Evidence] | None = None
        for statement, before in usable(passage):
            result = fit(claim, statement, _subject(statement, before))
            if not result:
                continue
            start, antecedent = statement.start, None
            if before is not None and not statement.first:
                if result.filled and statement.points_back:
                    start = before.start
                elif points_back(claim):
                    antecedent = (before.start, before.end)
            surplus = abs(len(statement.tokens) - len(claim))
            if best is None or surplus < best[0]:
                best = surplus, Evidence(passage, start, statement.end, antecedent)
            if not surplus:
                break  # no other can be closer
        if best:
            return best[1]
    return None


def _together(claim: Sequence[Token], passages: Sequence[Passage]) -> list[Evidence]:
    """Evidence for each of the two or three parts of a claim, or nothing."""
    places = cuts(claim)
    for one in places:
        first = _part([claim[:one]], passages)
        if first is None:
            continue
        if last := _part([claim[:one], claim[one:]], passages):
            return [first, last]
        for other in places:
            middle = _part([claim[:one], claim[one:other]], passages) if other > one else None
            last = _part([claim[:one], claim[one:other], claim[other:]], passages) if middle else None
            if middle and last:
                return [first, middle, last]
    return []


def _speaks(part: Sequence[Token]) -> bool:
    """Whether a part of a claim says something: a name alone does not."""
    verb = any(is_verb(part, at) for at in range(len(part))) or any(
        one.lower.endswith("s") and other.lower in DETERMINERS for one, other in pairwise(part)
    )
    return verb and sum(token.content for token in part) >= _LEAST


def _part(parts: Sequence[Sequence[Token]], passages: Sequence[Passage]) -> Evidence | None:
    """Evidence for the last of some parts. One without a subject has that of the first, or of what it refers to."""
    part = parts[-1]
    if not _speaks(part):
        return None
    if len(parts) == 1:
        return _whole(part, passages)
    first, *others = clauses(part)
    opening = first.opening
    if opening == "condition" and not first.joined and all(other.opening != "subject" for other in others):
        return None  # it binds the part before it, and no statement was found that says so
    if opening == "relative":
        return _whole([*_last_phrase(parts[-2]), *part], passages)
    if points_back(part):
        return _whole([*_first_phrase(parts[0]), *part], passages)
    own = _whole(part, passages)
    return own or (_whole([*_first_phrase(parts[0]), *part], passages) if opening == "verb" else None)


def _first_phrase(part: Sequence[Token]) -> Sequence[Token]:
    end = next((at for at in range(1, len(part)) if is_verb(part, at)), len(part))
    return part[:end]


def _last_phrase(part: Sequence[Token]) -> Sequence[Token]:
    start = next(
        (
            at + 1
            for at in range(len(part) - 2, -1, -1)
            if part[at].lower in DETERMINERS or part[at].lower in PREPOSITIONS or is_verb(part, at)
        ),
        0,
    )
    return part[start:]


def _join(found: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Evidence that touches, as one stretch."""
    joined: list[Evidence] = []
    for evidence in sorted(found, key=lambda item: (item.passage.number, item.start)):
        last = joined[-1] if joined else None
        if last and last.passage is evidence.passage and not evidence.passage.text[last.end : evidence.start].strip():
            joined[-1] = Evidence(last.passage, last.start, max(last.end, evidence.end), last.antecedent)
        else:
            joined.append(evidence)
    return tuple(joined)


def _closest_reason(claim: Sequence[Token], passages: Sequence[Passage]) -> str:
    """Why the statement that shares the most words with a claim does not bear it out."""
    pairs = [pair for passage in passages for pair in usable(passage)]
    if not pairs:
        return "there is no passage"
    statement, before = max(pairs, key=lambda pair: words_shared(claim, pair[0]))
    return fit(claim, statement, _subject(statement, before)).why or "its parts do not belong together"


def nearest(claim: str, passages: Sequence[Passage], taken: Sequence[Evidence], least: float = NEAR) -> Evidence | None:
    """The book's own sentence that says what a failed claim was meant to say, unless it was shown already: the one with
    the most of its content words, and with `least` of them."""
    words = tokens(claim)
    content = sum(token.content for token in words)
    best: tuple[float, Evidence] | None = None
    for passage in passages:
        for statement, before in usable(passage):
            share = words_shared(words, statement)
            if statement.form not in ("sentence", "item") or share < least or share * content < _NEAR_WORDS:
                continue
            back = statement.points_back and before is not None and not statement.first
            if back and before is not None and (before.points_back or before.form != "sentence"):
                continue
            evidence = Evidence(passage, before.start if back and before else statement.start, statement.end)
            shown = any(
                one.passage.text == passage.text and one.start < evidence.end and evidence.start < one.end
                for one in taken
            )
            if shown or len(evidence.quote) > _LONGEST_QUOTE:
                continue
            if best is None or share > best[0]:
                best = share, evidence
    return best[1] if best else None
