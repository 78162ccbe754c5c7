"""A follow-up becomes a question that can be searched for alone: "and its limits?" after one about topics.

Owns the rules that tell a follow-up from a question that stands alone, and the choice of the words of the conversation
that are added to it. The search sees the result; the reader and the model see what was asked. Never calls a model and
never searches.

A conversation is folded turn by turn, so that the fifth "why?" still knows what the first question was about.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from chapterverse.text import sentences

LIMIT: Final = 60  # words of a follow-up as it is searched for
_TURNS: Final = 20  # of the conversation that are looked at
_WORDY: Final = 40  # words; who writes so many has said what it is about

# How words of the conversation are weighed (bench/followups.py).
_DECAY: Final = 0.9  # per turn of age
_BREAK: Final = 0.5  # instead, where a new topic seems to begin
_ASKED: Final = 1.0  # a word of a question
_ANSWERED: Final = 0.5  # each time an answer says it again, up to the cap
_NAMED: Final = 0.5  # each time an answer says a name that nobody asked for, up to the cap
_CAP: Final = 3
# A question takes the few words that stand out, a bare reply more: it has no question of its own.
_OF_A_QUESTION: Final = (0.5, 6)  # least share of the greatest weight, most words
_OF_A_REPLY: Final = (0.2, 14)

_WORD = re.compile(r"[^\W_](?:[\w.'’+#/:-]*[\w+#])?")
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'’-]+")  # capital, and not only because a sentence begins
_THING = re.compile(
    r"(?<!^)\b(?!I\b)[A-Z]|\d|\w_\w|\w::\w|`|\bvs\b"
)  # a name, a number, an identifier: something of its own
_CLAUSE = re.compile(
    r"[,;:.?!—–()]|\b(?:and|but|so|because|if|when|while|although|since|then|or|after|before|until|once|unless)\b"
)
_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(.+)$", re.M)
_MARKER = re.compile(r"\s*\[\d+\]")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that bind others, and words of asking and of courtesy: they name nothing that could be searched for.
_EMPTY = _set("""
    a able about above actually after again all almost already also although always am an and another any anything
    are aren't around as ask at away back be because become been before being below best better between both but by
    bye called can can't cannot certain clarify come consider could couldn't day detail details did didn't difference
    different do does doesn't doing don't done down during each easy either elaborate else enough ever every exactly
    example examples explain few find first for from further get give go goes going good got great had happen happened
    happens has hasn't have haven't having he he's hello help hence her here hers hey hi him his how however i i'd i'll
    i'm i've idea if in info information instead into is isn't it it's its itself just keep kind know last least less
    let let's like little long look lot made make makes many may maybe me mean meaning meant means might mine more most
    much must my name need needed needs never next nice no nope nor not now number of off oh ok okay on once one ones
    only onto or other others our out over own part people perhaps please point possible provide put quite rather read
    really regarding right said same say second see seem seems shall she she's should show since so some someone
    something speak speaking still such sure take talk talking tell than thank thanks that that's the their theirs them
    themselves then there there's these they they're thing things think third this those though through thus till time
    to told too toward under understand until up upon us use used uses using very want was wasn't way we we're well
    were what what's whatever when where whether which while who who's whole whom whose why will with within without
    won't wonder wondering work works would wouldn't yeah year years yep yes yet you you're your yours
""")
# Words that say something of a thing, and not which: "what are the requirements?" asks for what was spoken of.
_RELATIONAL = _set("""
    advantage advantages affect alternative alternatives answer apply approved available avoid begin benefit benefits
    call case cause change changes check choose condition conditions consequence consequences contact cost costs
    deadline default disadvantage disadvantages document documents effect eligible end error errors exception
    exceptions expect fail fee fees fix form forms history important improve install kinds limit limitation limitations
    limits main meet month months online option options order origin pay paid price problem problems process purpose
    qualify question questions reason reasons receive request require required requirement requirements result results
    risk risks rule rules run send situation start step steps stop submit type types version versions
""")
_PERSONAL = _set("it its itself they them their theirs themselves he she him her his hers he's she's they're it's")
_POSSESSIVE = _set("its their his her")
_POINTING = _set("this that these those")
_BEFORE_THAT = _set("about after before by can did do does for from in is like of on to use using was with would")
_ASKING = _set("""
    am are can compare could define describe did do does explain give had has have how is list may name should show
    tell was were what what's when where which who whom whose why will would
""")
_COURTESY = re.compile(
    r"(?:(?:i see|i understand|got it|ok|okay|alright|great|nice|cool|thanks?(?: you)?(?: (?:so|very) much)?|well|oh|"
    r"perfect|interesting|by the way|hi|hello|hey)\b[\s,.!:;-]*)+",
    re.I,
)
_REPLY = re.compile(r"(?:yes|yeah|yep|yup|sure|correct|exactly|right|no|nope|nah|not)(?:[\s,.!]|$)", re.I)
_STATEMENT = re.compile(
    r"(?:i|we|my|our|he|she|they|i['’]m|i['’]ve|we['’]re|it['’]s|that['’]s)\b(?! (?:need|want|would))", re.I
)
_ACCEPT = re.compile(r"(?:yes|yeah|yep|yup|sure|ok|okay|please|go ahead|do it|do that)\b", re.I)
_OFFER: Final = 8  # words of a reply that only accepts what was offered
_ABOUT = re.compile(
    r"(?:and |but |so |or )?(?:what|how) about\b(?! (?:how|what|when|where|who|why)\b)|i meant?\b|instead\b", re.I
)
_LINKED: Final = 5  # content words; with more, "and" is but a manner of speaking
_LINK = re.compile(r"(?:and|but|so|or|also|then|plus|what if|any|other|more)\b", re.I)
_DEFINITION = re.compile(
    r"(?:(?:what|who) (?:is|are|was|were)|what's|define) (?P<article>an? )?"
    r"(?P<thing>[\w./+#:-]+(?: [\w./+#:-]+){0,2})\W*$",
    re.I,
)
_DEFINITE = re.compile(r"\b(?:the|this|that|these|those) ([\w-]+)(?! (?:of|between|for|in|that|which)\b)")
_WHO = re.compile(r"(?:who|whom|whose|when|where)\b['’\w]* \w", re.I)  # asks for something of its own: "who makes it?"
_ORDINAL = re.compile(
    r"\b(first|second|third|fourth|fifth|last)(?: (?:one|option|point|item|step|way|method|thing))?\W*$", re.I
)
_ORDER: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
# "It" that stands for nothing: "is it possible to", "how long does it take".
_IMPERSONAL = re.compile(
    r"\bit (?=possible|necessary|safe|better|worth|ok|okay|allowed|takes?\b|mean\b|cost\b|true|make|normal|required|"
    r"enough|important|a good idea|is (?:possible|necessary|safe|better|worth|true|required|important))"
)


class Exchange(Protocol):
    """An earlier turn."""

    @property
    def question(self) -> str:
        """What was asked."""
        ...

    @property
    def answer(self) -> str:
        """What was answered; may be empty."""
        ...


@dataclass(frozen=True, slots=True)
class Standalone:
    """What to search for, and why that is not what was asked."""

    question: str
    is_followup: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Turn:
    words: tuple[str, ...]  # those of the question that name something
    answer: str
    weight: float = 1.0  # falls with age


@dataclass(frozen=True, slots=True)
class _Thread:
    """What was said so far, newest first."""

    question: str = ""  # the last one, as it was searched for
    turns: tuple[_Turn, ...] = ()


def standalone(question: str, history: Sequence[Exchange]) -> Standalone:
    """The question as it can be searched for; `history` has the earlier turns, oldest first."""
    thread = _Thread()
    for turn in history[-_TURNS:]:
        resolved = _resolve(turn.question, thread)
        own = _content(turn.question)
        goes_on = resolved.is_followup or _shares(own, thread)
        kept = () if not goes_on and _defines(turn.question) else thread.turns  # "What is a topic?" begins anew
        fading = _DECAY if goes_on else _BREAK
        older = (replace(old, weight=old.weight * fading) for old in kept)
        thread = _Thread(resolved.question, (_Turn(own, turn.answer), *older))
    return _resolve(question, thread)


def _resolve(question: str, thread: _Thread) -> Standalone:
    asked = " ".join(question.split())
    if not thread.question or len(asked.split()) > _WORDY:
        return Standalone(question, False)
    why = _dependence(asked, thread)
    if not why:
        return Standalone(question, False)
    if why in ("accepts", "asks for more"):
        known = {_stem(word) for word in _content(thread.question)}
        older = _Thread(thread.question, thread.turns[1:])
        more = [thread.question, *_salient(older, known, *_OF_A_REPLY)]
        return Standalone(_cut(" ".join(more + ["example"] * ("example" in asked.lower()))), True, why)
    if why == "points at a part":
        return Standalone(_cut(f"{thread.question} {_part(asked, thread.turns[0].answer)}"), True, why)
    known = {_stem(word) for word in _content(asked)}
    added = " ".join(_salient(thread, known, *(_OF_A_REPLY if why == "replies" else _OF_A_QUESTION)))
    return Standalone(_cut(f"{asked} ({added})" if added else asked), True, why)


# ── does it depend on what was said before? ──────────────────────────────────────────────────────────────────────────


def _dependence(asked: str, thread: _Thread) -> str:
    """Why a question does not stand alone; empty if it does."""
    rest = _without_courtesy(asked)
    if _defines(rest):
        return ""
    own, answer = _content(rest), thread.turns[0].answer
    accepts = _ACCEPT.match(asked)
    ordinal = _ORDINAL.search(rest)
    signs = {
        "accepts": accepts and (not own or (answer.endswith("?") and len(asked.split()) <= _OFFER)),
        "points at a part": ordinal and not _content(rest[: ordinal.start()]) and _part(rest, answer),
        "asks for more": not own and not _WHO.match(rest),
        "replies": _REPLY.match(rest),
        "tells": _STATEMENT.match(rest) and not ("?" in rest or _THING.search(rest)),
        "goes on": _ABOUT.match(rest) or (_LINK.match(rest) and len(own) <= _LINKED),
        "has a pronoun": _dangles(rest.lower()),
    }
    return next((why for why, holds in signs.items() if holds), "") or _brevity(rest, own, thread)


def _defines(asked: str) -> bool:
    """Whether it asks what something is, and names it: "what are worker nodes?", not "what are the others?"."""
    match = _DEFINITION.match(asked)
    if match is None:
        return False
    words = match["thing"].lower().split()
    if _PERSONAL.intersection(words):
        return False
    return bool(match["article"]) or words[0] not in _EMPTY | _RELATIONAL


def _without_courtesy(asked: str) -> str:
    """From where something is asked or told: "Great, thanks. That is good to know." comes before it."""
    for start, end in sentences(asked):
        part = asked[start:end]
        polite = _COURTESY.match(part)
        said = part[polite.end() :] if polite else part
        if said and ("?" in said or len(_content(said)) > 1 or _REPLY.match(said) or end == len(asked)):
            return said + asked[end:]
    return ""


def _brevity(asked: str, own: tuple[str, ...], thread: _Thread) -> str:
    """Why a question is too short to stand alone; empty if it is not."""
    if _THING.search(asked):
        return ""
    if len(own) <= 3 and not any(part.split()[0] in _ASKING for part in _CLAUSE.split(asked.lower()) if part.split()):
        return "is a fragment"
    if len(own) == 1 or all(word.lower() in _RELATIONAL for word in own):
        return "is short"
    said = {_stem(word) for turn in thread.turns for word in (*turn.words, *_content(turn.answer))}
    if len(own) == 2 and any(word.lower() in _RELATIONAL or _stem(word) in said for word in own):
        return "is short"
    if len(own) <= 3 and any(_stem(noun) in said for noun in _DEFINITE.findall(asked.lower())):
        return "names what was said"
    return ""


def _dangles(asked: str) -> bool:
    """Whether a pronoun has nothing in the question that it could stand for: an earlier clause with content."""
    plain = _IMPERSONAL.sub("", asked)
    for match in _WORD.finditer(plain):
        word, before = match[0], plain[: match.start()]
        if word not in _PERSONAL | _POINTING:
            continue
        if word == "that" and before.split() and before.split()[-1] not in _BEFORE_THAT:
            continue  # "a node that fails", "so that", "sure that"
        if word in _POSSESSIVE and len(_content(before)) > 1:
            continue  # "does a launch file find its parameters"
        clauses = list(_CLAUSE.finditer(before))
        if not clauses or not _content(before[: clauses[-1].start()]):
            return True
    return False


# ── which words say what it is about? ────────────────────────────────────────────────────────────────────────────────


def _salient(thread: _Thread, known: set[str], share: float, most: int) -> list[str]:
    """The words of the thread that weigh most, without those known, in the order in which they are newest."""
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}  # in order of first sight, newest turn first
    for turn in thread.turns:
        for stem, word in {_stem(word): word for word in turn.words}.items():
            weights[stem] = weights.get(stem, 0.0) + turn.weight * _ASKED
            spelled.setdefault(stem, word)
    asked = frozenset(weights)
    for turn in thread.turns:
        said = Counter(_stem(word) for word in _content(turn.answer))
        for stem, count in said.items():
            if stem in asked:
                weights[stem] += turn.weight * _ANSWERED * min(count, _CAP)
        for name in dict.fromkeys(_NAME.findall(_MARKER.sub("", turn.answer))):
            stem = _stem(name)
            if stem in said and stem not in asked:
                weights[stem] = weights.get(stem, 0.0) + turn.weight * _NAMED * min(said[stem], _CAP)
                spelled.setdefault(stem, name)
    least = share * max(weights.values(), default=0.0)
    heavy = sorted((stem for stem in spelled if weights[stem] >= least), key=lambda stem: -weights[stem])
    chosen = set([stem for stem in heavy if stem not in known][:most])
    return [word for stem, word in spelled.items() if stem in chosen]


def _shares(words: Sequence[str], thread: _Thread) -> bool:
    """Whether a question that stands alone speaks of what the thread's questions spoke of."""
    return not {_stem(word) for word in words}.isdisjoint(_stem(word) for turn in thread.turns for word in turn.words)


def _part(asked: str, answer: str) -> str:
    """The item, or else the sentence, of the answer that "the second one" points at."""
    ordinal = _ORDINAL.search(asked)
    parts = _ITEM.findall(answer) or [answer[start:end] for start, end in sentences(answer)]
    if ordinal is None or not parts:
        return ""
    place = _ORDER[ordinal[1].lower()]
    return _MARKER.sub("", parts[place]).strip() if place < len(parts) else ""


def _content(text: str) -> tuple[str, ...]:
    return tuple(word for word in _WORD.findall(text) if word.lower().replace("’", "'") not in _EMPTY)


def _stem(word: str) -> str:
    """A word without the ending that tells one from many, for comparing."""
    short = word.lower().removesuffix("'s").removesuffix("’s")
    return short[:-1] if len(short) > 3 and short.endswith("s") else short


def _cut(text: str) -> str:
    return " ".join(text.split()[:LIMIT])
