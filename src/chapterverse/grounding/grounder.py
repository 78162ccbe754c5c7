"""The gate between a model and the reader: text goes in as it streams, verified sentences come out.

Owns the life of one answer: which passages were issued, which number each source has, what was shown, withheld and
replaced, and when to stop listening. Never lets through a sentence that its judge did not find borne out, and never
takes back what it let through.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chapterverse.grounding import markers
from chapterverse.grounding.cutter import Cutter, Unit
from chapterverse.grounding.listings import find_code, find_head, find_row, language_of
from chapterverse.grounding.passages import Citation, Evidence, Judge, Passage, Reason, Shown, Verdict, Withheld
from chapterverse.grounding.refusals import refuses
from chapterverse.grounding.sources import Sources
from chapterverse.grounding.support import LIKELY_NEAR, NEAR, Rules, nearest
from chapterverse.text import sentences

MAX_UNITS = 200  # sentences listened to, shown or not
MAX_SHOWN = 60  # sentences of an answer
MAX_CHARS = 60_000  # of the model's text, about 10,000 words
MAX_OPINIONS = 60  # sentences in other words that are given a second opinion: two seconds of one core
MAX_REPEATS = 4  # sentences said again: a model that repeats itself has lost its way

_RULE = re.compile(r"[|:\-\s]+")
_LABEL = re.compile(r"\*\*[^*\n]{1,80}\*\*:?\s+(?=\S)|[A-Z][\w ]{0,30}:\s+(?=\S)")
_WORD = re.compile(r"\w+")
_NO_CLAIM: tuple[Reason, ...] = ("no claim", "refusal", "repeated")


@dataclass(slots=True)
class _Table:
    """The table that is being written."""

    head: Evidence | None = None
    waiting: str = ""  # its head and rule, until a row is shown under them


class Grounder:
    """Checks one answer. Feed it the model's text, show what it gives back."""

    def __init__(self, passages: Sequence[Passage], judge: Judge | None = None) -> None:
        self._passages = list(passages)
        self._rules = Rules()
        self._judge: Judge = judge or self._rules
        self._cutter = Cutter()
        self._sources = Sources()
        self._said: set[str] = set()
        self._last: Evidence | None = None  # behind the sentence shown last
        self._opening: Unit | None = None  # the block that has begun and of which nothing was shown yet
        self._table = _Table()
        self._chars = self._units = self._repeats = self._opinions = 0
        self.shown = self.withheld = self.replaced = 0
        self.refused = False  # the model wrote one of the refusals
        self.truncated = False  # a limit ended the answer; what comes after it is not looked at

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Where the numbers of the answer point, in their order. Complete after `finish`."""
        return self._sources.citations

    def add_passages(self, passages: Sequence[Passage]) -> None:
        """Issue more passages, as after another search. A number that was issued before is not changed."""
        issued = {passage.number for passage in self._passages}
        self._passages.extend(passage for passage in passages if passage.number not in issued)

    def feed(self, delta: str) -> list[Shown | Withheld]:
        """Check what this piece of text completes."""
        return self.check(self.cut(delta))

    def finish(self) -> list[Shown | Withheld]:
        """Check what is left at the end of the text."""
        return self.check(self.cut_rest())

    def cut(self, delta: str) -> list[Unit]:
        """What this piece of text completes, to be checked. Quick, where checking may take long."""
        if self.truncated:
            return []
        room = MAX_CHARS - self._chars
        self._chars += len(delta)
        return self._cutter.feed(delta[:room])

    def cut_rest(self) -> list[Unit]:
        """What is left at the end of the text, to be checked."""
        return [] if self.truncated else self._cutter.finish()

    def is_quick(self, units: Sequence[Unit]) -> bool:
        """Whether checking takes no more than rules: every sentence stands in a passage word for word."""
        return all(unit.kind != "sentence" or self._stands(unit.text) for unit in units)

    def check(self, units: Sequence[Unit]) -> list[Shown | Withheld]:
        """Check what was cut, in its order. Blocks as long as the judge does."""
        results: list[Shown | Withheld] = []
        for unit in units:
            if self.truncated:
                break
            result = self._check(unit)
            self._units += 1
            if result is None:
                continue
            results.append(result)
            if isinstance(result, Shown):
                self.shown += 1
                self.replaced += result.replaced
            elif result.reason not in _NO_CLAIM:
                self.withheld += 1
            self.truncated = self._units >= MAX_UNITS or self.shown >= MAX_SHOWN or self._repeats >= MAX_REPEATS
        self.truncated = self.truncated or self._chars > MAX_CHARS
        return results

    def _stands(self, sentence: str) -> bool:
        return any(sentence in passage.text for passage in self._passages)

    def _check(self, unit: Unit) -> Shown | Withheld | None:
        """What becomes of a unit; None while the head of a table waits for its first row."""
        if unit.opens and not (unit.kind == "row" and self._table.head):
            self._opening = unit
        if unit.kind == "row":
            return self._check_row(unit)
        self._table = _Table()
        said = " ".join(_WORD.findall(unit.text.lower()))
        if unit.kind == "heading" or not said or unit.text.rstrip("*_ ").endswith((":", "：")):
            return Withheld(unit.text, "no claim")
        if unit.kind == "too long":
            return Withheld(unit.text, "too long")
        if refuses(unit.text):
            self.refused = True
            return Withheld(unit.text, "refusal")
        if said in self._said:
            self._repeats += 1
            return Withheld(unit.text, "repeated")
        self._said.add(said)
        return self._check_code(unit) if unit.kind == "code" else self._check_claim(unit)

    def _check_code(self, unit: Unit) -> Shown | Withheld:
        evidence = find_code(unit.text, self._ordered(unit.numbers))
        if evidence is None:
            return Withheld(unit.text, "unsupported", "these lines stand in no passage")
        number = self._sources.cite(evidence)
        text = f"{self._open()}```{language_of(unit.text)}\n{evidence.quote}\n```\n[{number}]\n"
        self._last = evidence
        return Shown(text, (self._sources.citation(number),))

    def _check_row(self, unit: Unit) -> Shown | Withheld | None:
        """Rows pass only as rows of one table of the book, under its own head."""
        table = self._table
        if table.head is None:
            table.head = find_head(unit.text, self._ordered(unit.numbers))
            table.waiting = f"{unit.text}\n"
            return None if table.head else Withheld(unit.text, "unsupported", "no table of a passage begins so")
        if _RULE.fullmatch(unit.text):
            table.waiting += f"{unit.text}\n" if table.waiting else ""
            return None
        evidence = find_row(unit.text, table.head)
        if evidence is None:
            return Withheld(unit.text, "unsupported", "the table has no such row")
        number = self._sources.cite(evidence)
        text = f"{self._open()}{table.waiting}{unit.text.rstrip().rstrip('|').rstrip()} [{number}] |\n"
        table.waiting = ""
        self._last = evidence
        return Shown(text, (self._sources.citation(number),))

    def _check_claim(self, unit: Unit) -> Shown | Withheld:
        if unit.text.rstrip("*_ \"'”’)").endswith(("?", "？")):
            return Withheld(unit.text, "question")
        ordered = self._ordered(unit.numbers)
        text = unit.text
        self._opinions += not self._stands(text)
        judge = self._judge if self._opinions <= MAX_OPINIONS else self._rules
        verdict = judge.judge(text, ordered)
        if not verdict.supported and (label := _LABEL.match(text)):
            # A label of the model's own carries no claim: the sentence may stand without it.
            bare = text[label.end() :]
            again = judge.judge(bare, ordered)
            text, verdict = (bare, again) if again.supported else (text, verdict)
        evidence = verdict.evidence
        if evidence and self._clear(evidence[0]):
            return self._show([text], evidence)
        return self._replace(unit, ordered, verdict)

    def _replace(self, unit: Unit, ordered: Sequence[Passage], verdict: Verdict) -> Shown | Withheld:
        """Put the book's own sentence in the place of one that failed, where there is one that was not yet shown."""
        why = verdict.why or "it points back to a sentence that was not shown"
        own = nearest(unit.text, ordered, self._sources.evidence, LIKELY_NEAR if verdict.likely else NEAR)
        if own is None:
            return Withheld(unit.text, "unsupported" if why != "says nothing" else "no claim", why)
        quote = markers.remove(" ".join(own.quote.split()))[0]
        self._said.add(" ".join(_WORD.findall(quote.lower())))
        return self._show([quote[start:end] for start, end in sentences(quote)], (own,), replaced=True)

    def _show(self, said: Sequence[str], evidence: Sequence[Evidence], *, replaced: bool = False) -> Shown:
        """Show sentences that rest on the same evidence, each with its markers."""
        numbers = tuple(dict.fromkeys(self._sources.cite(one) for one in evidence))
        self._last = evidence[-1]
        written = f"{self._open()}{' '.join(markers.place(sentence, numbers) for sentence in said)} "
        return Shown(written, tuple(map(self._sources.citation, numbers)), replaced)

    def _ordered(self, cited: Sequence[int]) -> list[Passage]:
        """The issued passages, those that the sentence cites first. Numbers that were never issued name nothing."""
        rank = {number: at for at, number in enumerate(cited)}
        return sorted(self._passages, key=lambda passage: rank.get(passage.number, len(rank)))

    def _clear(self, evidence: Evidence) -> bool:
        """Whether what a sentence points back to was the last thing shown."""
        if evidence.antecedent is None:
            return True
        start, end = evidence.antecedent
        last = self._last
        return (
            last is not None
            and last.passage.number == evidence.passage.number
            and last.start < evidence.end
            and start < last.end
            and last.end <= max(end, evidence.end)
        )

    def _open(self) -> str:
        """What separates a block from the one shown before it; empty inside a block."""
        unit, self._opening = self._opening, None
        if unit is None:
            return ""
        if self.shown == 0:
            return unit.bullet
        return f"\n{unit.bullet}" if unit.bullet else "\n\n"
