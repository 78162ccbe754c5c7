"""Assembles proven statements so that withheld ones leave no gaps in the text.

A heading or a lead-in is shown only with what it introduces, and nothing is shown under the heading or in the list item
before its own. After a withheld statement, no connective ("However, …") or pronoun may refer to it. The renderer keeps
list numbers right.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from chapterverse.evidence.citations import MORE, Proven
from chapterverse.evidence.statement import Statement

# Words that only connect a statement to the one before it. With a comma they can be removed; without one they may mean
# more ("Besides the key, …", "Nor does it …").
_CONNECTIVE = re.compile(
    r"(?:however|but|also|additionally|in addition|furthermore|moreover|therefore|thus|hence|consequently|as a result|"
    r"then|instead|alternatively|likewise|similarly|conversely|nevertheless|nonetheless|finally|for example|"
    r"for instance|that said|in contrast|by contrast|on the other hand|besides|besides this|meanwhile|next|"
    r"afterwards|accordingly|and|or|"
    r"so|yet)(?P<comma>,)?\s+|(?:still|again|rather|in short|in other words|in particular|specifically)(?P<stop>,)\s+",
    re.IGNORECASE,
)
# Words at the beginning that refer to the statement before.
_POINTS_BACK = re.compile(
    r"(?:it|its|it's|it’s|they|their|they're|them|this|these|that|those|such|he|she|his|her|both|neither|nor|otherwise|"
    r"(?:(?:as in|in|for|from|to|with|on) )?"
    r"(?:(?:the|all|any) (?:former|latter|same|others?|previous|preceding|above)|"
    r"(?:each|all|any|some|most|none|one) of (?:them|these|those))|"
    r"(?:to do|for|with|in|after|because of|from|by|besides|without|if) (?:this|that|these|those|it|them|so|not))\b",
    re.IGNORECASE,
)
# "This page", "instead of", "both the key and": begin like the words above but do not refer back.
_OWN_PAGE = re.compile(
    r"(?:this|these) (?:page|section|chapter|guide|document|documentation|tutorial|article|book|manual|example)s?\b"
    r"|(?:instead|then|next) (?:of|to)\b|so (?:that|far|long)\b|such as\b"
    r"|both (?!(?:are|were|have|had|can|do|did|will|must|may|should|need)\b)"
    r"(?:(?:the|an?|your) )?[\w`-]+(?: [\w`-]+){0,3}? and\b",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^\s{0,20}(?:[-*+•]|\(?\d{1,4}[.)])\s{1,20}")
_GAP: Final = Proven(Statement(MORE, shape="heading", level=7), "frame")
_ANNOUNCES = re.compile(r"\b(?:follow(?:s|ing)|below|here|these|this|like so|as such)\b", re.IGNORECASE)


@dataclass(slots=True)
class _Waiting:
    """A heading or a lead-in that is shown with the first thing that it introduces."""

    proven: Proven
    written: Statement  # as the model wrote it: its place decides what it introduces
    introduces: str = ""  # the shape of what followed it
    lost: bool = False  # withheld: never shown


@dataclass(slots=True)
class Assembly:
    """Takes statements in order, proven or not, and returns those that can be shown now."""

    _waiting: list[_Waiting] = field(default_factory=list)
    _hole: bool = False  # the last statement was withheld
    _unopened: Statement | None = None  # a withheld statement that began the current block
    _led: bool = False  # a heading or a lead-in was shown
    _gone: list[int] = field(default_factory=list)  # depths of the withheld items around this place

    def dangles(self, proven: Proven) -> bool:
        """Whether a statement refers back to one that was withheld, or was judged under a lead-in that was."""
        statement = proven.statement
        lost = [one for one in self._waiting if one.lost and one.introduces != "heading"]
        if proven.kind == "supported" and any(_introduces(one, statement) for one in lost):
            return True
        prose = statement.shape in ("paragraph", "item", "heading")
        return self._hole and prose and begins_dangling(without_connective(statement.text))

    def withhold(self, statement: Statement) -> list[Proven]:
        """Record a statement that is not shown, and return the lead-ins that can be shown now."""
        released = self._pass(statement)
        if statement.opens:
            self._unopened = statement
        if statement.shape == "item" and self._unopened is not None:
            self._gone.append(statement.depth)
        if statement.leads and statement.shape != "heading":
            self._waiting.append(_Waiting(Proven(statement, "frame"), statement, lost=True))
        if statement.leads and statement.shape != "item" and self._led:
            # Separates what follows from what the heading or the lead-in before introduces.
            self._waiting = [one for one in self._waiting if one.proven != _GAP] + [_Waiting(_GAP, _GAP.statement)]
        self._hole = self._hole or not statement.leads
        return released

    def add(self, proven: Proven, written: Statement) -> list[Proven]:
        """Add a proven statement for the one that was written, and return what can be shown now."""
        released = self._pass(written)
        proven = self._repaired(proven)
        announces = proven.statement.above_code and _ANNOUNCES.search(proven.statement.text)
        if proven.statement.leads or announces or proven.kind == "frame":
            self._waiting.append(_Waiting(proven, written))
            return released
        released += [waiting.proven for waiting in self._waiting if not waiting.lost]
        self._led = self._led or bool(released)
        self._waiting = [waiting for waiting in self._waiting if waiting.lost]
        self._hole = False
        return [*released, proven]

    def finish(self) -> list[Proven]:
        """Return the remaining lead-ins that can be shown alone."""
        return [one for waiting in self._waiting for one in _alone(waiting.proven)]

    def _pass(self, statement: Statement) -> list[Proven]:
        """Drop the waiting lead-ins that this statement does not belong to. Returns those that can be shown alone."""
        self._gone = [depth for depth in self._gone if depth < statement.depth]
        kept: list[_Waiting] = []
        released: list[Proven] = []
        for waiting in self._waiting:
            if _introduces(waiting, statement):
                waiting.introduces = waiting.introduces or statement.shape
                kept.append(waiting)
            else:
                released += _alone(waiting.proven)
        if released:  # a lead-in is shown under its headings
            headings = [waiting.proven for waiting in kept if waiting.proven.statement.shape == "heading"]
            kept = [waiting for waiting in kept if waiting.proven.statement.shape != "heading"]
            released = [*headings, *released]
        self._waiting = kept
        return released

    def _repaired(self, proven: Proven) -> Proven:
        statement = proven.statement
        began, self._unopened = self._unopened, None
        if began is not None and not statement.opens and began.shape == statement.shape:
            statement = replace(statement, opens=True, marker=began.marker, depth=began.depth)
        if self._hole and statement.shape in ("paragraph", "item", "heading"):
            statement = replace(statement, text=without_connective(statement.text))
        # What was in a withheld item moves out: it must not end up in the item before.
        statement = replace(statement, depth=statement.depth - len(self._gone))
        return replace(proven, statement=statement)


def without_connective(text: str) -> str:
    """Remove a connective and its comma from the beginning of a statement."""
    start = _start(text)
    found = _CONNECTIVE.match(text, start)
    if found is None or not (found["comma"] or found["stop"]):
        return text
    rest = text[found.end() :]
    return text[:start] + rest[:1].upper() + rest[1:]


def without_mark(text: str) -> str:
    """Remove the mark of a list item from the beginning of a text."""
    return _LIST_MARK.sub("", text)


def begins_dangling(text: str) -> bool:
    """Whether a text begins with a connective or a pronoun that refers to the text before it."""
    bare = without_mark(text)
    start = _start(bare)
    if _OWN_PAGE.match(bare, start):
        return False
    return any(pattern.match(f"{bare} ", start) for pattern in (_POINTS_BACK, _CONNECTIVE))  # also "For example," alone


def _start(text: str) -> int:
    return len(text) - len(text.lstrip("*_\"“'("))


def _introduces(waiting: _Waiting, statement: Statement) -> bool:
    """Whether a statement still belongs to what a heading or a lead-in introduces."""
    lead = waiting.written
    if lead.shape == "heading":
        return statement.shape != "heading" or statement.level > lead.level
    if statement.depth > lead.depth or waiting.introduces == "heading":
        return True
    if lead.shape == "item" or statement.depth < lead.depth:
        if statement.depth != lead.depth:
            return False
        # Bullets that belong to a numbered step may stand below it without an indent.
        other_list = statement.shape == "item" and lead.marker[:1].isdigit() != statement.marker[:1].isdigit()
        return other_list or (statement.shape == "code" and not waiting.introduces)
    if not waiting.introduces:
        return statement.opens or not lead.leads
    return statement.shape == waiting.introduces != "paragraph"


def _alone(proven: Proven) -> list[Proven]:
    """Return a lead-in without what it introduced: a fact ends with a full stop, an announcement is left out. A fact
    comes from a unit that says something without what follows it."""
    statement = proven.statement
    says = any(unit.kind != "code" and not Statement(unit.text).leads for unit in proven.units)
    if not says or statement.shape == "heading" or _ANNOUNCES.search(statement.text):
        return []
    text = re.sub(r"[:：](?=[*_ ]*$)", ".", statement.text)
    return [replace(proven, statement=replace(statement, text=text))]
