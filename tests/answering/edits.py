"""Makes true and false sentences by rule from the sentences of a book.

True edits: repeat, shorten at a clause, move a clause, join two sentences, replace a word with a synonym. False edits:
change a number, name, identifier, quantity, negation or subject, or join with a false half. Invented facts are a third
group. A rule that does not apply to a sentence returns None.
"""

import random
import re
from collections.abc import Callable, Sequence

Edit = Callable[[str, Sequence[str], random.Random], str | None]

_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
_NAME = re.compile(r"(?<=[a-z,] )(?!The\b|You|This\b|These\b|That\b|For\b|And\b)[A-Z][A-Za-z0-9]{2,}\b")
_CODE = re.compile(r"`[^`]+`|\b\w+_\w+\b")
_NOUN = re.compile(r"(?<![\w-])[a-z]{5,}(?![\w-])")
_BE = re.compile(r"\b(is|are|was|were|can|will|must|should|may)\b(?! not)")
_NOT = re.compile(r"\b(?:(is|are|was|were|can|will|must|should|may|do|does) not|(can)not)\b")
_LEADING = re.compile(r"^(If|When|After|Before|Once|Because|In|With|For|To|By|During|While) ([^,]{6,80}), (.+)\.$")
_ASIDE = re.compile(r"(?:, (?:which|because|since|so|including|such as)\b[^,]{8,120}(?=\.$)| \([^()]{3,80}\))")
_BORROWED = re.compile(r" (?:if|when|unless|until|only if|only when|as long as|while|because) [^.,;:]{8,}\.$")
_TRAILING_IF = re.compile(r",? (?:if|when|unless|until|only if|only when|as long as) [^.]{8,}\.$")
_PREDICATE = re.compile(
    r"^(?P<subject>(?:The|A|An|Each|This|[A-Z]\w+)(?: [\w`-]+){0,3}) "
    r"(?P<rest>(?:is|are|can|must|has|will|uses|provides|returns) .+)$"
)

_PAIRS = (
    "enable disable|increase decrease|before after|first last|maximum minimum|more less|higher lower|larger "
    "smaller|start stop|above below|allow prevent|add remove|create delete|mutable immutable|synchronous "
    "asynchronous|same different|public private|internal external|required optional|static dynamic|valid invalid|true "
    "false|read write|client server|input output|local remote|new old|faster slower|include exclude|left right|inside "
    "outside|automatically manually|accept reject|positive negative|long short|single multiple|explicit implicit|safe "
    "unsafe"
)
_ANTONYMS = {
    one: other for pair in _PAIRS.split("|") for one, other in (tuple(pair.split()), tuple(reversed(pair.split())))
}
_DEPENDENT = re.compile(r"(?:It|This|These|Those|That|They|He|She|Its|Their|However|But|And|So|Then|Also|Instead)\b")
_QUANTITIES = {
    "all": "some", "every": "one", "each": "one", "some": "all", "most": "all", "many": "all", "always": "sometimes",
    "usually": "always", "often": "always", "sometimes": "always", "must": "may", "should": "must", "may": "must",
    "only": "also", "at least": "at most", "at most": "at least", "any": "no", "several": "all", "never": "sometimes",
}  # fmt: skip
_SAME = (
    ("in order to", "to"), ("must", "has to"), ("need to", "must"), ("because", "since"),
    ("for example", "for instance"),
    ("multiple", "several"), ("cannot", "can't"), ("do not", "don't"), ("does not", "doesn't"), ("is not", "isn't"),
    ("such as", "like"), ("via", "through"), ("uses", "employs"), ("requires", "needs"), ("starts", "begins"),
    ("provides", "offers"), ("contains", "holds"), ("allows", "lets"), ("approximately", "about"), ("creates", "makes"),
)  # fmt: skip
# Synonyms that are not in the word lists of the package.
_ALIKE = (
    ("important", "significant"), ("significant", "important"), ("area", "region"), ("areas", "regions"),
    ("method", "way"), ("methods", "ways"), ("problem", "issue"), ("problems", "issues"), ("main", "chief"),
    ("located", "situated"), ("called", "named"), ("known as", "called"), ("receive", "be given"), ("delete", "erase"),
    ("remove", "take away"), ("check", "verify"), ("verify", "check"), ("begin", "get going"), ("end", "finish"),
    ("sufficient", "adequate"), ("purchase", "buy"), ("buy", "purchase"), ("attempt", "try"), ("answer", "reply"),
    ("entire", "whole"), ("whole", "entire"), ("difficult", "hard"), ("simple", "easy"), ("quickly", "swiftly"),
    ("responsible", "accountable"), ("applicant", "person who applies"), ("child", "youngster"), ("city", "town"),
    ("submit", "hand in"), ("assist", "support"), ("complete", "finish"), ("improve", "better"), ("ask", "request"),
    ("information", "details"), ("guidelines", "guidance"), ("documents", "papers"), ("benefits", "payments"),
    ("established", "founded"), ("founded", "established"), ("building", "edifice"), ("consider", "think about"),
)  # fmt: skip
_BEFORE_NOUN = re.compile(r"(?<= )(the|a|an) (?=[a-z]{4,}(?: [a-z]+){0,2}[ .,])")
_QUALITIES = ("experimental", "award-winning", "Swiss", "costly", "hidden", "rotating", "secret", "portable", "leading")
_TAILS = (
    "which saves most people a lot of money", "according to a recent survey", "a choice that experts often criticise",
    "so that no training is necessary", "mostly for historical reasons", "which was first shown in Geneva",
    "even in very cold weather", "and this doubles the speed", "as researchers have confirmed",
    "which the authors regret", "and nobody has ever complained", "unlike its competitors",
)  # fmt: skip
_LEGENDS = (
    "was invented by a team of monks in Norway", "supports automatic translation into Klingon",
    "costs 49 dollars a month",
    "was named after a famous poet", "is banned in several countries", "runs on batteries for three weeks",
    "has been downloaded more than nine million times", "must be renewed every 17 years",
)  # fmt: skip


def lower_first(sentence: str) -> str:
    """Write a sentence as the second half of another one."""
    return sentence[0].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def upper_first(sentence: str) -> str:
    """Write a clause as a sentence."""
    return sentence[:1].upper() + sentence[1:]


def _substitute(sentence: str, pattern: re.Pattern[str], others: Sequence[str], rng: random.Random) -> str | None:
    found = list(pattern.finditer(sentence))
    pool = sorted({match for other in others for match in pattern.findall(other)} - {match[0] for match in found})
    if not found or not pool:
        return None
    match = rng.choice(found)
    chosen: str = rng.choice(pool)
    return sentence[: match.start()] + chosen + sentence[match.end() :]


# ── true ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _verbatim(sentence: str, _: Sequence[str], __: random.Random) -> str | None:
    return sentence


def _shortened(sentence: str, _: Sequence[str], __: random.Random) -> str | None:
    short = _ASIDE.sub("", sentence)
    return short if short != sentence else None


def _moved(sentence: str, _: Sequence[str], __: random.Random) -> str | None:
    match = _LEADING.match(sentence)
    if not match or "," in match[3]:
        return None
    return f"{upper_first(match[3])} {match[1].lower()} {match[2]}."


def _merged(sentence: str, others: Sequence[str], rng: random.Random) -> str | None:
    whole = [other for other in others if not _DEPENDENT.match(other) and "," not in other[:24]]
    return f"{sentence[:-1]}, and {lower_first(rng.choice(whole))}" if whole else None


def _reworded(sentence: str, _: Sequence[str], rng: random.Random) -> str | None:
    fitting = [(one, other) for one, other in _SAME if re.search(rf"\b{one}\b", sentence)]
    if not fitting:
        return None
    one, other = rng.choice(fitting)
    return re.sub(rf"\b{one}\b", other, sentence, count=1)


def _paraphrased(sentence: str, _: Sequence[str], rng: random.Random) -> str | None:
    fitting = [(one, other) for one, other in _ALIKE if re.search(rf"\b{one}\b", sentence)]
    for one, other in rng.sample(fitting, min(2, len(fitting))):
        sentence = re.sub(rf"\b{one}\b", other, sentence, count=1)
    return sentence if fitting else None


def _framed(sentence: str, _: Sequence[str], __: random.Random) -> str | None:
    return f"According to the documentation, {lower_first(sentence)}"


# ── false ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _number(sentence: str, _: Sequence[str], rng: random.Random) -> str | None:
    found = list(_NUMBER.finditer(sentence))
    if not found:
        return None
    match = rng.choice(found)
    digits = match[0]
    changed = str(int(digits[-1]) + 1 if digits[-1] != "9" else 3)
    return sentence[: match.end() - 1] + changed + sentence[match.end() :]


def _name(sentence: str, others: Sequence[str], rng: random.Random) -> str | None:
    return _substitute(sentence, _NAME, others, rng)


def _identifier(sentence: str, others: Sequence[str], rng: random.Random) -> str | None:
    return _substitute(sentence, _CODE, others, rng)


def _noun(sentence: str, others: Sequence[str], rng: random.Random) -> str | None:
    return _substitute(sentence, _NOUN, others, rng)


def _negated(sentence: str, _: Sequence[str], __: random.Random) -> str | None:
    if _NOT.search(sentence):
        return _NOT.sub(lambda match: match[1] or match[2], sentence, count=1)
    return _BE.sub(r"\1 not", sentence, count=1) if _BE.search(sentence) else None


def _swapped(table: dict[str, str]) -> Edit:
    def edit(sentence: str, _: Sequence[str], rng: random.Random) -> str | None:
        fitting = [word for word in table if re.search(rf"\b{word}\b", sentence)]
        if not fitting:
            return None
        word = rng.choice(fitting)
        return re.sub(rf"\b{word}\b", table[word], sentence, count=1)

    return edit


def _condition(sentence: str, _: Sequence[str], __: random.Random) -> str | None:
    match = _LEADING.match(sentence)
    if match and match[1] in ("If", "When", "Once"):
        return upper_first(match[3]) + "."
    bare = _TRAILING_IF.sub(".", sentence)
    return bare if bare != sentence and len(bare.split()) > 4 else None


def _half(sentence: str, others: Sequence[str], rng: random.Random) -> str | None:
    """Join a true sentence with a false one."""
    if not others:
        return None
    other = rng.choice(others)
    damaged = _negated(other, (), rng)
    return f"{sentence[:-1]}, and {lower_first(damaged)}" if damaged else None


def _subject(sentence: str, others: Sequence[str], rng: random.Random) -> str | None:
    """Give the predicate another subject."""
    mine = _PREDICATE.match(sentence)
    subjects = [match["subject"] for match in map(_PREDICATE.match, others) if match]
    if not mine or not subjects:
        return None
    subject = rng.choice(subjects)
    words = set(mine["subject"].lower().rstrip("s").split())
    return (
        None
        if words & set(subject.lower().rstrip("s").split()) - {"the", "a", "an", "this", "each"}
        else f"{subject} {mine['rest']}"
    )


def _borrowed(sentence: str, others: Sequence[str], rng: random.Random) -> str | None:
    """Add a condition or reason that the book gives for something else."""
    tails = [match[0] for match in map(_BORROWED.search, others) if match]
    return f"{sentence[:-1]}{rng.choice(tails)}" if tails and not _TRAILING_IF.search(sentence) else None


def _tail(sentence: str, _: Sequence[str], rng: random.Random) -> str | None:
    """Add a fact that is not in the book to a true sentence."""
    return f"{sentence[:-1]}, {rng.choice(_TAILS)}."


def _quality(sentence: str, _: Sequence[str], rng: random.Random) -> str | None:
    """Add a property that the book does not mention."""
    found = list(_BEFORE_NOUN.finditer(sentence))
    if not found:
        return None
    match = rng.choice(found)
    article = "a" if match[1] == "an" else match[1]
    return f"{sentence[: match.start()]}{article} {rng.choice(_QUALITIES)} {sentence[match.end() :]}"


def _legend(sentence: str, _: Sequence[str], rng: random.Random) -> str | None:
    """An invented fact about a subject of the book."""
    mine = _PREDICATE.match(sentence)
    return f"{mine['subject']} {rng.choice(_LEGENDS)}." if mine else None


TRUE: dict[str, Edit] = {
    "verbatim": _verbatim, "shortened": _shortened, "moved": _moved, "merged": _merged, "reworded": _reworded,
    "framed": _framed, "paraphrased": _paraphrased,
}  # fmt: skip
FALSE: dict[str, Edit] = {
    "number": _number, "name": _name, "identifier": _identifier, "noun": _noun, "negation": _negated,
    "antonym": _swapped(_ANTONYMS), "quantity": _swapped(_QUANTITIES), "condition": _condition, "half": _half,
    "subject": _subject, "borrowed": _borrowed,
}  # fmt: skip
INVENTED: dict[str, Edit] = {"tail": _tail, "quality": _quality, "legend": _legend}
