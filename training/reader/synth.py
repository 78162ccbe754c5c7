"""Questions by rule from plain sentences, answerable and not.

Owns the question templates and the ways to make a question that its passage does not answer. Text in, rows out; no
model and no labels by people are used here.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from training.edits import FUNCTION, IDENTIFIER, NAME, NUMBER, contained, content, damage, reword, surroundings
from training.prose import Passage
from training.rows import Row, spans_of

AUX = r"(?:is|are|was|were|can|could|will|would|must|should|may|might|has|have|had)"
_BAD_START = re.compile(
    r"^(?:if|when|while|although|though|because|since|after|before|unless|in|on|at|by|for|from|with|to|as|and|but|or|so|"
    r"it|this|these|those|that|they|he|she|we|you|i|there|here|however|note|see|for|also|then|instead|such|some|its)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"^[A-Z`].{25,260}[.]$")
_LEAD = re.compile(
    r"^(?:However|Additionally|In addition|Moreover|Furthermore|Also|Note that|Typically|Similarly|Finally|In general|"
    r"For example|For instance|Therefore|Thus|As a result|Instead|By default)\b,?\s*"
)
_PHRASE = re.compile(r"^((?:In|On|At|During|After|Before|By|Since|Within|Under) [^,]{3,50}), (.+)$")
_CUT = re.compile(
    r",? (?:which|who|where|because|although|while|but|and then|so that|such as|including|whereas)\b|[;:(]|, "
)
_DATE = re.compile(r"\b(?:in|on|since|by|until|from) ((?:\w+ \d{1,2}, |\d{1,2} \w+ |[A-Z]\w+ )?(?:1[0-9]|20)\d\d)\b")
_QUANTITY = re.compile(
    r"\b((?:about |over |nearly |around )?(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten)) ([a-z]{3,}s)\b"
)
_PLACE = re.compile(r"\b(?:in|at|near|from) ((?:the )?[A-Z]\w+(?: [A-Z]\w+)*)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the words of the sentence that answer it; no words: the whole sentence does."""

    text: str
    answer: str
    kind: str


@dataclass(frozen=True, slots=True)
class Verbs:
    """Base forms by the forms in which they are met."""

    base: dict[str, str]
    bases: frozenset[str]


def learn_verbs(texts: Iterable[str]) -> Verbs:
    """Verbs are what follows "to", "can" and "will" often."""
    met = Counter(
        word for text in texts for word in re.findall(r"\b(?:to|can|will|must|should|you|could) ([a-z]{2,})\b", text)
    )
    never = FUNCTION | {"the", "be", "not", "an", "it", "re", "pre", "self", "all", "any", "our", "its", "no", "help"}
    bases = frozenset(w for w, n in met.items() if n >= 25 and w not in never and not w.endswith("ly"))
    base = {}
    for verb in sorted(bases):
        stem = verb.removesuffix("e")
        third = (
            verb + "es"
            if verb.endswith(("s", "sh", "ch", "x"))
            else verb[:-1] + "ies"
            if verb[-2:] in ("ry", "ly", "fy")
            else verb + "s"
        )
        base[third] = verb
        base.setdefault(f"{stem}ed", verb)
        if re.search(r"[^aeiou][aeiou][bdgmnprt]$", verb):
            base.setdefault(f"{verb}{verb[-1]}ed", verb)
    return Verbs(base, bases)


def usable(sentence: str) -> bool:
    return (
        bool(_SENTENCE.match(sentence))
        and "|" not in sentence
        and "http" not in sentence
        and len(content(sentence)) >= 4
    )


def _shorter(text: str, rng: random.Random) -> str:
    """Up to a clause's end, most of the time."""
    cut = _CUT.search(text, 12)
    return text[: cut.start()] if cut and rng.random() < 0.75 else text


def _low(text: str) -> str:
    return (
        text[:1].lower() + text[1:]
        if text[1:2].islower() and re.match(r"(?:The|A|An|Each|Every|All|Most|Your|One)\b", text)
        else text
    )


@dataclass(frozen=True, slots=True)
class Clause:
    """A sentence cut at its first verb."""

    lead: str  # "In 1066"
    subject: str
    verb: str
    rest: str
    helper: bool  # is, can, has, …


def parse(sentence: str, verbs: Verbs) -> Clause | None:
    body = _LEAD.sub("", sentence[:-1])
    body = body[:1].upper() + body[1:]
    lead = ""
    if (phrase := _PHRASE.match(body)) is not None:
        lead, body = phrase[1], phrase[2][:1].upper() + phrase[2][1:]
    if _BAD_START.match(body):
        return None
    words = body.split()
    for place in range(1, min(10, len(words) - 1)):
        word = words[place]
        if re.fullmatch(AUX, word):
            break
        if word in verbs.base and words[place - 1].lower() not in {"the", "a", "an", "of", "to", "and", "or", "that"}:
            break
        if word.endswith(",") or word in {"that", "which", "who", "if", "when", "to"}:
            return None
    else:
        return None
    subject, rest = " ".join(words[:place]), " ".join(words[place + 1 :])
    return Clause(lead, _low(subject), word, rest, bool(re.fullmatch(AUX, word))) if len(rest) > 5 else None


def _who(subject: str, rng: random.Random) -> str:
    if re.fullmatch(r"[A-Z]\w+ [A-Z]\w+", subject):
        return rng.choice(("Who", "Who", "What", "Which person"))
    noun = subject.rsplit(maxsplit=1)[-1]
    return rng.choice(("What", "What", f"Which {noun}" if noun.islower() and noun.isalpha() else "What"))


def clause_questions(clause: Clause, rng: random.Random, verbs: Verbs) -> Iterator[Question]:
    rest = _shorter(clause.rest, rng)
    tail = f" {clause.lead[0].lower()}{clause.lead[1:]}" if clause.lead and rng.random() < 0.7 else ""
    if len(clause.subject.split()) <= 7:
        yield Question(f"{_who(clause.subject, rng)} {clause.verb} {rest}{tail}?", clause.subject, "subject")
    if clause.helper:
        front, body = f"{clause.verb} {clause.subject}", rest
    elif clause.verb in verbs.base:
        does = "did" if clause.verb.endswith("ed") else "does"
        front, body = f"{does} {clause.subject} {verbs.base[clause.verb]}", rest
        yield Question(f"What {front}{tail}?", clause.rest, "object")
    else:
        return
    if clause.verb in ("is", "are", "was", "were") and re.match(r"(?:a|an|the|one of)\b", clause.rest):
        form = rng.choice(
            ("What {verb} {subject}?", "What {verb} {subject}?", "What does {subject} mean?", "define {subject}",
             "{subject} meaning", "Explain {subject}", "What do you call {rest}?")
        )  # fmt: skip
        answer = clause.subject if "{rest}" in form else clause.rest
        yield Question(form.format(verb=clause.verb, subject=clause.subject, rest=rest), answer, "definition")
    for pattern, asks in ((_DATE, ("When", "In what year", "When")), (_PLACE, ("Where", "In which place", "Where"))):
        found = pattern.search(f" {body}")
        if found:
            others = " ".join(f" {body}".replace(found[0], "", 1).split())
            yield Question(
                f"{rng.choice(asks)} {front} {others}{tail}?", found[1], "date" if pattern is _DATE else "place"
            )
    if clause.lead and (found := NUMBER.search(clause.lead)):
        yield Question(f"When {front} {body}?", found[0], "date")
    counted = _QUANTITY.search(body)
    if counted:
        others = " ".join(body.replace(counted[0], "", 1).split())
        yield Question(f"How many {counted[2]} {front} {others}{tail}?", counted[1], "count")
    for name in NAME.finditer(f"a {body}"):
        before = f"a {body}"[: name.start()].removeprefix("a ").strip()
        if not before:
            continue
        asks = rng.choice(("Who", "What") if before.endswith("by") else ("What", "Which", "Who"))
        yield Question(f"{asks} {front} {before}{tail}?", name[0], "name")
        break


_PATTERNS: tuple[tuple[re.Pattern[str], tuple[str, ...], str], ...] = (
    (re.compile(r"^To (?P<q>[a-z][^,]{6,90}), (?P<a>.{12,})\.$"),
     ("How do I {q}?", "How can I {q}?", "How do you {q}?", "how to {q}", "What should I do to {q}?"), "how"),
    (re.compile(r"^(?:You can |Use |You can use |We use )(?P<a>[^,]{3,80}?) to (?P<q>[a-z][^,.]{8,100})[.,]"),
     ("How do I {q}?", "What can I use to {q}?", "How can I {q}?", "how to {q}"), "how"),
    (re.compile(r"^(?P<a>(?:The )?[^,]{3,60}?) (?:is|are) used to (?P<q>[a-z][^,.]{8,100})[.,]"),
     ("What is used to {q}?", "How do I {q}?", "Which thing is used to {q}?"), "how"),
    (re.compile(r"^You (?:can|should|must|may) (?P<q>[a-z][^,]{5,80}?) (?P<a>(?:by|using|with|through) .{8,})\.$"),
     ("How can I {q}?", "How do I {q}?", "how to {q}", "What is the way to {q}?"), "how"),
    (re.compile(r"^If (?P<q>[^,]{8,100}), (?:then )?(?P<a>.{12,})\.$"),
     ("What happens if {q}?", "What if {q}?", "What should happen when {q}?"), "condition"),
    (re.compile(r"^When (?P<q>[^,]{8,100}), (?P<a>.{12,})\.$"),
     ("What happens when {q}?", "What happens if {q}?"), "condition"),
    (re.compile(r"^(?P<q>[A-Z][^,]{15,120}?),? (?:because|since|as) (?P<a>[a-z].{12,})\.$"),
     ("Why is it that {q}?", "What is the reason that {q}?", "{q}, why?", "Why {q}?"), "why"),
    (re.compile(r"^(?P<q>[^,]{4,60}?),? (?:also )?(?:called|known as|named) (?P<a>[^,.]{3,60})[,.]"),
     ("What is {q} called?", "What is the name of {q}?", "What is another name for {q}?"), "called"),
    (re.compile(r"^(?P<q>[^,]{4,60}?) (?:consists? of|includes?|contains?|comprises?) (?P<a>.{8,})\.$"),
     ("What does {q} consist of?", "What is in {q}?", "What does {q} include?"), "parts"),
    (re.compile(r"^The (?P<q>[a-z][^,]{4,70}?) (?:is|are|was|were) (?P<a>.{4,})\.$"),
     ("What is the {q}?", "what's the {q}", "{q}?", "Tell me the {q}"), "definition"),
    (re.compile(r"^(?P<q>[^,]{4,60}?) (?:depends? on|(?:is|are) determined by) (?P<a>.{8,})\.$"),
     ("What does {q} depend on?", "What determines {q}?"), "depends"),
    (re.compile(r"^(?P<q>[^,]{4,60}?) (?:allows?|lets?|enables?|helps?) (?P<a>.{12,})\.$"),
     ("What does {q} do?", "What is {q} for?", "Why use {q}?", "What is the purpose of {q}?"), "purpose"),
)  # fmt: skip


def pattern_questions(sentence: str, rng: random.Random) -> Iterator[Question]:
    body = _LEAD.sub("", sentence)
    body = body[:1].upper() + body[1:]
    for pattern, forms, kind in _PATTERNS:
        found = pattern.match(body)
        if found and not re.match(r"(?:This|It|They|These|That|There|Its|He|She)\b", found["q"]):
            asked = _low(found["q"]) if kind != "why" else found["q"][:1].lower() + found["q"][1:]
            yield Question(rng.choice(forms).format(q=asked), found["a"], kind)


def gap_question(sentence: str, rng: random.Random) -> Question | None:
    """A name, number or identifier asked for in its place."""
    body = sentence[:-1]
    found = [(m, "what name") for m in NAME.finditer(body)] + [(m, "which one") for m in IDENTIFIER.finditer(body)]
    found += [(m, "how many") for m in NUMBER.finditer(body)]
    if not found:
        return None
    match, asked = rng.choice(found)
    asked = rng.choice(
        {
            "what name": ("what", "who", "which"),
            "which one": ("which", "what"),
            "how many": ("how many", "what number", "how much"),
        }[asked]
    )
    left, right = body[: match.start()], body[match.end() :]
    left = left[max((c.end() for c in _CUT.finditer(left)), default=0) :] if rng.random() < 0.6 else left
    right = _shorter(right, rng)
    words = f"{left}{asked}{right}".split()
    if rng.random() < 0.35:  # asked first, as in a question
        words = f"{asked} {right} {left}".split()
    if rng.random() < 0.4 and len(words) > 7:
        words = [w for w in words if rng.random() > 0.12 or w == asked]
    return Question(" ".join(words) + rng.choice(("?", "?", "")), match[0], "gap") if len(words) > 4 else None


def keywords(sentence: str, rng: random.Random) -> Question:
    """What one would type into a search box."""
    words = [w.strip(".,;:()") for w in sentence.split() if w.lower().strip(".,;:()") not in FUNCTION and len(w) > 3]
    chosen = sorted(rng.sample(range(len(words)), min(len(words), rng.randint(3, 6))))
    form = rng.choice(("{}", "{}", "what about {}", "tell me about {}", "{}?"))
    return Question(form.format(" ".join(words[i] for i in chosen)), "", "keywords")


def heading_question(heading: str, verbs: Verbs, rng: random.Random) -> str | None:
    words = heading.strip("#: ").split()
    if not 2 <= len(words) <= 9:
        return None
    first = words[0].lower()
    stem = first.removesuffix("ing")
    verb = (
        first
        if first in verbs.bases
        else next((v for v in (stem, stem + "e", stem[:-1]) if first.endswith("ing") and v in verbs.bases), "")
    )
    if verb:
        return rng.choice(("How do I {}?", "How can I {}?", "how to {}", "How does one {}?")).format(
            " ".join([verb, *words[1:]])
        )
    if heading.endswith("?") or first in {"what", "how", "why", "when", "where", "which"}:
        return heading
    return rng.choice(("What is {}?", "{}", "Tell me about {}", "Explain {}")).format(heading)


def questions(sentence: str, verbs: Verbs, rng: random.Random, most: int) -> list[Question]:
    """A few questions that the sentence answers, of different kinds."""
    made = list(pattern_questions(sentence, rng))
    clause = parse(sentence, verbs)
    if clause:
        made += clause_questions(clause, rng, verbs)
    if (gap := gap_question(sentence, rng)) and (not made or rng.random() < 0.35):
        made.append(gap)
    if not made or rng.random() < 0.08:
        made.append(keywords(sentence, rng))
    rng.shuffle(made)
    made.sort(key=lambda q: q.kind in ("gap", "keywords"))
    kept = [q for q in made if 3 <= len(q.text.split()) <= 32][:most]
    return [Question(" ".join(reword(q.text, rng).split()), q.answer, q.kind) for q in kept]


def _answer_span(passage: Sequence[str], place: int, answer: str) -> tuple[int, int] | None:
    if not answer:
        return None
    start = sum(len(s) + 1 for s in passage[:place])
    at = passage[place].lower().find(answer.lower())
    return (start + at, start + at + len(answer)) if at >= 0 else None


def page_rows(pages: Sequence[Passage], verbs: Verbs, rng: random.Random, per_passage: int) -> Iterator[Row]:
    """Rows from the passages of one page, given in their order."""
    everything = [s for p in pages for s in p.sentences]
    for number, passage in enumerate(pages):
        near = surroundings(
            [
                *passage.sentences,
                passage.heading,
                *(s for p in pages[max(0, number - 2) : number + 3] for s in p.sentences),
            ]
        )
        places = [i for i, s in enumerate(passage.sentences) if usable(s)]
        rng.shuffle(places)
        head = f"{passage.heading}. " if rng.random() < 0.4 else ""
        if number == 0 and (asked := heading_question(passage.heading, verbs, rng)) and rng.random() < 0.5:
            yield Row("rule", passage.source, asked, passage.text, 1, kind="heading")
        for place in places[:per_passage]:
            sentence = passage.sentences[place]
            for question in questions(sentence, verbs, rng, 2):
                yield from _rows_of(question, passage, place, head, rng, near, everything)


def _rows_of(question, passage, place, head, rng, near, everything) -> Iterator[Row]:  # noqa: PLR0913, PLR0917 - one call, above
    sentences = ([head.strip()] if head else []) + list(passage.sentences)
    place += bool(head)
    text, spans = " ".join(sentences), spans_of(sentences)
    evidence = (spans[place],)
    answer = _answer_span(sentences, place, question.answer)
    yield Row("rule", passage.source, question.text, text, 1, answer, evidence, question.kind)
    draw = rng.random() * (0.45 if question.kind == "keywords" else 1.0)
    if draw > 0.45:
        changed = damage(question.text, near, rng, ("dropped",))
        if changed and contained(changed[0], sentences[place]) < 0.999:
            yield Row("rule", passage.source, changed[0], text, 0, kind=f"question {changed[1]}")
    elif draw < 0.2 and len(sentences) > 2:
        rest = " ".join(s for i, s in enumerate(sentences) if i != place)
        if contained(sentences[place], rest) < 0.7:
            yield Row("rule", passage.source, question.text, rest, 0, kind="removed")
    else:
        start = rng.randrange(len(everything))
        other = " ".join(everything[start : start + 6])
        if contained(sentences[place], other) < 0.5 and len(other) > 120:
            yield Row("rule", passage.source, question.text, other, 0, kind="same page")
