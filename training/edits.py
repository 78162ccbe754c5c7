"""Small changes by rule: some keep what a text says, most make it say something else.

Owns the rules that make false statements and questions without an answer out of true ones. Each damage returns None
where it does not apply. Works on any text, a sentence or a question; knows nothing of labels or files.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

_PAIRS = """enable disable, enabled disabled, enables disables, increase decrease, increases decreases,
increased decreased,
before after, first last, maximum minimum, more less, higher lower, high low, larger smaller, large small, start stop,
starts stops, started stopped, above below, allow prevent, allows prevents, allowed forbidden, add remove, adds removes,
added removed, create delete, creates deletes, created destroyed, mutable immutable, synchronous asynchronous,
same different, public private, internal external, required optional, static dynamic, success failure, succeeds fails,
valid invalid, true false, read write, reads writes, client server, input output, local remote, new old, newer older,
open closed, faster slower, fast slow, safe unsafe, stable unstable, include exclude, includes excludes, upper lower,
left right, horizontal vertical, simple complex, easy difficult, easier harder, automatically manually, accept reject,
accepts rejects, accepted rejected, positive negative, greater smaller, long short, longer shorter, single multiple,
temporary permanent, beginning end, begins ends, early late, earlier later, inside outside, often rarely,
directly indirectly, supported unsupported, available unavailable, possible impossible, strong weak, good bad,
better worse, best worst, explicit implicit, rise fall, rose fell, gain loss, won lost, born died, north south,
northern southern, east west, eastern western, male female, men women, older younger, cold hot, buy sell, import export,
parent child, absent present, empty full, most least, majority minority, most fewest, oldest newest, largest smallest,
highest lowest, longest shortest, earliest latest, front back, rich poor, war peace, attack defend, attacked defended,
victory defeat, allies enemies, top bottom, heavy light, hard soft, wide narrow, deep shallow, modern ancient,
urban rural, legal illegal, known unknown, common rare, similar dissimilar, active inactive, lead follow, join leave,
joined left, agreed disagreed, support oppose, supported opposed, supports opposes, approve deny, approved denied,
promote hinder, gained lost, arrived departed, entered left, began ended, built demolished, founded abolished,
strengthen weaken, expand shrink, expanded shrank, improve worsen, improved worsened, raise lower, raised lowered,
innate adaptive, liquid gas, conservative liberal, primary secondary, major minor, upstream downstream"""
OPPOSITE: dict[str, str] = {}
for _pair in _PAIRS.replace("\n", " ").split(", "):
    _one, _other = _pair.split()
    OPPOSITE.setdefault(_one, _other)
    OPPOSITE.setdefault(_other, _one)
_DEGREES = (
    ("all", "some"), ("every", "some"), ("always", "sometimes"), ("must", "may"), ("should", "must not"),
    ("only", "not only"), ("never", "sometimes"), ("both", "neither"), ("many", "few"), ("at least", "at most"),
    ("more than", "less than"), ("usually", "never"), ("exactly", "at least"), ("most", "a few"), ("each", "no"),
)  # fmt: skip
_SAME = """use employ; uses employs; in order to=to; need to=have to; allows you to=lets you; ensure=make sure;
because=since; for example=for instance; such as=like; multiple=several; specify=set; obtain=get; modify=change;
determine=decide; provides=offers; provide=offer; requires=needs; require=need; starts=begins; start=begin;
create=make; creates=makes; created=made; contains=holds; approximately=about; show=display; shows=displays;
does not=doesn't; do not=don't; cannot=can't; is not=isn't; executes=runs; execute=run; build=construct;
built=constructed; helps=assists; large=big; prior to=before; via=through; indicates=shows; consists of=is made of;
called=named; known as=called; purpose=aim; began=started; founded=established; established=founded; located=situated;
wrote=authored; movie=film; film=movie; important=significant; significant=important; people=persons; area=region;
region=area; country=nation; kind=type; type=kind; way=method; method=way; problem=issue; issue=problem;
delete=remove; error=failure; check=verify; verify=check; enough=sufficient; part=portion; caused=led to;
happened=occurred; occurred=took place; primary=main; main=primary; usually=normally; generally=usually; received=got;
choose=select; select=choose; configure=set up; install=set up; launch=start; retrieve=fetch; currently=now;
increase=raise; reduce=lower; permit=allow; allow=permit; said=stated; stated=said; ended=finished"""
SAME = [
    (a.strip(), b.strip())
    for entry in re.sub(r"\n", " ", _SAME).split(";")
    for a, b in [entry.split("=") if "=" in entry else entry.split()]
]
NEGATIVE = re.compile(r"\b(?:not|no|never|none|cannot|without|neither|nor|nothing|unable)\b|n't\b", re.IGNORECASE)
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)")
NAME = re.compile(r"(?<=[a-z,;(] )[A-Z][\w’'-]*(?:[ -](?:of |the )?[A-Z][\w’'-]*){0,3}")
IDENTIFIER = re.compile(r"`[^`\n]{2,60}`|\b\w+(?:::\w+)+|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|\b\w+\(\)|--[a-z][\w-]+")
NOUN = re.compile(r"\b[a-z]{4,}\b")
_COUNTS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_COUNT = re.compile(rf"\b(?:{'|'.join(_COUNTS)})\b")
_BE = re.compile(r"\b(is|are|was|were|can|could|will|would|must|should|may|did|does|do|has been|have been)\b")
FUNCTION = frozenset(
    [
        "which",
        "where",
        "there",
        "their",
        "these",
        "those",
        "about",
        "after",
        "before",
        "because",
        "being",
        "between",
        "other",
        "under",
        "until",
        "while",
        "could",
        "would",
        "should",
        "might",
        "using",
        "every",
        "since",
        "through",
        "during",
        "within",
        "without",
        "against",
        "among",
        "another",
        "first",
        "second",
        "third",
        "often",
        "always",
        "never",
        "still",
        "again",
        "either",
        "neither",
        "whether",
        "rather",
        "quite",
        "almost",
        "already",
        "example",
        "follows",
        "following",
        "section",
        "then",
        "that",
        "this",
        "with",
        "from",
        "into",
        "have",
        "been",
        "when",
        "what",
        "were",
        "will",
        "they",
        "them",
        "your",
        "must",
        "does",
        "also",
        "such",
        "than",
        "some",
        "more",
        "most",
        "only",
        "very",
        "each",
        "both",
        "over",
        "like",
        "many",
        "much",
        "well",
        "even",
        "just",
        "back",
        "down",
        "here",
        "make",
        "made",
        "makes",
        "used",
        "uses",
        "take",
        "takes",
        "given",
        "gives",
    ]
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a damage may borrow from the text around."""

    numbers: tuple[str, ...]
    names: tuple[str, ...]
    identifiers: tuple[str, ...]
    nouns: tuple[str, ...]
    tails: tuple[str, ...]


_TAIL = re.compile(
    r"(?:,? (?:because|which|by|using|with|after|for|since|in|when|if|during|to) [^,.;:()]{8,70})(?=\.$)"
)


def surroundings(texts: Iterable[str]) -> Surroundings:
    kept = list(texts)

    def every(pattern: re.Pattern[str]) -> tuple[str, ...]:
        return tuple(sorted(set(chain.from_iterable(pattern.findall(text) for text in kept))))

    nouns = tuple(word for word in every(NOUN) if word not in FUNCTION and word not in OPPOSITE)
    return Surroundings(every(NUMBER), every(NAME), every(IDENTIFIER), nouns, every(_TAIL))


def content(text: str) -> set[str]:
    """Stems of the words that carry meaning."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {re.sub(r"(?:ing|ed|es|s|e)$", "", w) if len(w) > 4 else w for w in words if len(w) > 2 and w not in _STOP}


_STOP = FUNCTION | frozenset(
    [
        "the",
        "and",
        "for",
        "are",
        "was",
        "has",
        "had",
        "not",
        "but",
        "its",
        "his",
        "her",
        "who",
        "how",
        "why",
        "can",
        "may",
        "any",
        "all",
        "one",
        "our",
        "you",
    ]
)


def contained(text: str, other: str) -> float:
    """The share of a text's content words that another text has."""
    wanted = content(text)
    return len(wanted & content(other)) / max(1, len(wanted))


def _swap(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]


def change_number(text: str, around: Surroundings, rng: random.Random) -> str | None:
    found = list(NUMBER.finditer(text))
    if not found:
        counted = list(_COUNT.finditer(text))
        if not counted:
            return None
        chosen = rng.choice(counted)
        return _swap(text, chosen, rng.choice([c for c in _COUNTS if c != chosen[0]]))
    chosen = rng.choice(found)
    others = [n for n in around.numbers if n not in text]
    if others and rng.random() < 0.5:
        return _swap(text, chosen, rng.choice(others))
    digits = chosen[0].replace(",", "")
    if digits.count(".") > 1:
        return None
    value = float(digits)
    step = rng.choice((1, 2, 3, 10)) * rng.choice((-1, 1))
    new = value + step if value >= 1000 or rng.random() < 0.4 else value * rng.choice((2, 3, 5, 10))
    if new < 0 or new == value:
        return None
    return _swap(text, chosen, f"{new:.1f}" if "." in digits else str(int(new)))


def change_name(text: str, around: Surroundings, rng: random.Random) -> str | None:
    found, others = list(NAME.finditer(text)), [n for n in around.names if n not in text]
    return _swap(text, rng.choice(found), rng.choice(others)) if found and others else None


def change_identifier(text: str, around: Surroundings, rng: random.Random) -> str | None:
    found, others = list(IDENTIFIER.finditer(text)), [i for i in around.identifiers if i not in text]
    if not found:
        return None
    chosen = rng.choice(found)
    if others and rng.random() < 0.8:
        likest = sorted(others, key=lambda o: -len(set(o) & set(chosen[0])) + 4 * rng.random())
        return _swap(text, chosen, likest[0])
    parts = re.split(r"([_\-./:])", chosen[0])
    if len(parts) < 3:
        return None
    parts[rng.randrange(0, len(parts), 2)] = rng.choice(
        ("max", "node", "config", "default", "status", "list", "timeout")
    )
    return _swap(text, chosen, "".join(parts))


def change_noun(text: str, around: Surroundings, rng: random.Random) -> str | None:
    """A word for another of the same ending, so that the sentence still reads well."""
    found = [m for m in NOUN.finditer(text) if m[0] not in FUNCTION and m[0] not in OPPOSITE]
    rng.shuffle(found)
    for chosen in found[:4]:
        fitting = [
            n for n in around.nouns if n not in text.lower() and n[-2:] == chosen[0][-2:] and n[:4] != chosen[0][:4]
        ]
        if fitting:
            return _swap(text, chosen, rng.choice(fitting))
    return None


def change_opposite(text: str, around: Surroundings, rng: random.Random) -> str | None:
    found = [m for m in re.finditer(r"\b[A-Za-z]+\b", text) if m[0].lower() in OPPOSITE]
    if not found:
        return None
    chosen = rng.choice(found)
    new = OPPOSITE[chosen[0].lower()]
    return _swap(text, chosen, new.capitalize() if chosen[0][0].isupper() else new)


def change_negation(text: str, around: Surroundings, rng: random.Random) -> str | None:
    found = NEGATIVE.search(text)
    if found:
        if found[0] == "n't" or found[0].lower() == "not":
            return " ".join((text[: found.start()] + " " + text[found.end() :]).split())
        new = {"never": "always", "without": "with", "cannot": "can", "unable": "able", "no": "a"}.get(found[0].lower())
        return _swap(text, found, new) if new else None
    verb = _BE.search(text)
    if not verb:
        return None
    if verb[0] == "can":
        return _swap(text, verb, "cannot")
    first, _, second = verb[0].partition(" ")
    return _swap(text, verb, f"{first} {rng.choice(('not', 'not', 'never'))} {second}".rstrip())


def change_degree(text: str, around: Surroundings, rng: random.Random) -> str | None:
    fitting = [(a, b) for pair in _DEGREES for a, b in (pair, pair[::-1]) if re.search(rf"\b{a}\b", text)]
    if not fitting:
        return None
    old, new = rng.choice(fitting)
    return re.sub(rf"\b{old}\b", new, text, count=1)


def add_condition(text: str, around: Surroundings, rng: random.Random) -> str | None:
    """A detail of another sentence."""
    others = [t for t in around.tails if t not in text]
    end = text[-1:] if text[-1:] in ".?" else ""
    return text[: len(text) - len(end)] + rng.choice(others) + end if others else None


def drop_condition(text: str, around: Surroundings, rng: random.Random) -> str | None:
    front = re.match(r"^(?:If|When|Unless|Once|After|Before|While)\b[^,]{6,110}, (.{15,})$", text)
    if front:
        return front[1][0].upper() + front[1][1:]
    back = re.match(r"^(.{20,}?),? (?:if|when|unless|only if|only when|as long as|provided that) .{8,}\.$", text)
    return f"{back[1]}." if back else None


Damage = Callable[[str, Surroundings, random.Random], str | None]
DAMAGES: tuple[tuple[str, Damage, float], ...] = (
    ("number", change_number, 1.4),
    ("name", change_name, 1.4),
    ("identifier", change_identifier, 1.2),
    ("noun", change_noun, 1.3),
    ("opposite", change_opposite, 1.3),
    ("negation", change_negation, 1.0),
    ("degree", change_degree, 0.7),
    ("added", add_condition, 0.8),
    ("dropped", drop_condition, 0.6),
)


def damage(
    text: str, around: Surroundings, rng: random.Random, leave_out: Sequence[str] = ()
) -> tuple[str, str] | None:
    """The text made to say something else, and the name of the change."""
    kinds = [kind for kind in DAMAGES if kind[0] not in leave_out]
    for name, change, _ in sorted(kinds, key=lambda kind: -kind[2] * rng.random()):
        new = change(text, around, rng)
        if new and " ".join(new.split()).lower() != " ".join(text.split()).lower():
            return " ".join(new.split()), name
    return None


def reword(text: str, rng: random.Random, most: int = 2) -> str:
    """Other words for the same thing."""
    fitting = [pair for pair in SAME if re.search(rf"\b{re.escape(pair[0])}\b", text)]
    for old, new in rng.sample(fitting, min(len(fitting), rng.randint(0, most))):
        text = re.sub(rf"\b{re.escape(old)}\b", new, text, count=1)
    return text
