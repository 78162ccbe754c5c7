"""The gate between a writer and the reader: statements go in, proven statements come out, in order.

The checks run in the order of SPEC 4.4: quotes of the book, exact details, the judge. Statements are judged while the
writer continues, several in one call. Each is passed on as soon as it has its verdict and all before it were passed on.
A statement that is not proven is replaced by a quote of the units that it named, or withheld. Code that is true of one
thing may be written below a line about another, so a line is judged together with the code directly below it.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from typing import Final

from chapterverse.errors import AgentUnavailable
from chapterverse.evidence.assembly import Assembly, begins_dangling, without_mark
from chapterverse.evidence.citations import Proven
from chapterverse.evidence.exact import Known, comparable, is_whole_code, missing_in, proven_code
from chapterverse.evidence.judge import Judge, JudgeRequest, JudgeUsage, Verdict
from chapterverse.evidence.passages import Evidence, IssuedUnit, fitting
from chapterverse.evidence.statement import Finished, Shape, Statement, UnitRef
from chapterverse.language import stems

log = logging.getLogger(__name__)

Drafts = AsyncGenerator[Statement | Proven | Finished, None]

MAX_STATEMENTS: Final = 200  # examined, shown or not
MAX_SHOWN: Final = 60
MAX_STATEMENT_CHARS: Final = 1500  # a longer text is not a sentence
MAX_REPEATS: Final = 4  # repeated statements that end the answer
REPEATED_WORDS: Final = 5  # minimum words of a repetition: lists and steps may share shorter items and commands
MAX_EVIDENCE_CHARS: Final = 24_000  # of one call to the judge
MAX_CLAIMS: Final = 12  # of one call
AT_ONCE: Final = 3  # parallel calls to the judge; at the end as many more, for the last statements
QUOTED_UNITS: Final = 3  # maximum units that replace one statement
QUOTED_CHARS: Final = 700
NEAREST_SHARE: Final = 0.2  # minimum share of a supported statement's words in the unit cited if the judge names none
REPLACING_SHARE: Final = 0.5  # minimum share of a statement's words in its replacement if it names only a passage
CONTEXT_CHARS: Final = 600  # of each text before a claim
MAX_AROUND: Final = 8  # headings, lead-ins and items around a claim that the judge sees

_CALLS_LEFT: Final[set[asyncio.Task[None]]] = set()  # calls to the judge that may outlive their answer

# Words of a statement that says what is missing, or that it must be looked for elsewhere.
_NEGATION = re.compile(
    r"\b(?:not|no|nor|none|nothing|never|neither|without|cannot|only|un\w+ed|lacks?|elsewhere)\b|n['’]t\b"
    r"|(?:\bwould|['’]d) (?:need|have)\b",
    re.IGNORECASE,
)
# "The passages do not say …": a narrow rule for statements about what the book does not say.
_SOURCE = (
    r"(?:book|passages?|documentation|docs|text|context|selection|excerpts?|sources?|article|chapter|page|section|"
    r"manual|guide)"
)
_TELL = (
    r"(?:say|mention|state|specif|explain|describ|give|show|name|list|includ|contain|cover|discuss|tell|document|provid|"
    r"defin|address|indicat|answer|detail|present|found|part of|available)"
)
_NOT = r"(?:\b(?:not|never|no|nothing|neither)\b|n['’]t\b)"
_ABSENCE = re.compile(
    rf"\b{_SOURCE}\b[^.:;]{{0,60}}{_NOT}[^.:;]{{0,20}}\b{_TELL}"
    rf"|{_NOT}[^.:;]{{0,20}}\b{_TELL}[^.:;]{{0,40}}\b(?:in|by|from|of) (?:the|this|these) (?:\w+ ){{0,2}}{_SOURCE}\b"
    rf"|\bneed (?:an?|another|other) (?:\w+ )?{_SOURCE}\b"
    r"|\bi (?:could not|couldn['’]t|did not|didn['’]t|can['’]t|cannot) find\b|\bno information\b",
    re.IGNORECASE,
)


_SAYS_MORE = re.compile(r"[;—–]|\b(?:but|which|while|although|whereas|instead|only|except)\b", re.IGNORECASE)


@dataclass(slots=True)
class Counts:
    """Counts the statements of an answer by what happened to them."""

    shown: int = 0  # frames are not counted
    quoted: int = 0
    withheld: int = 0
    replaced: int = 0


@dataclass(slots=True)
class _Entry:
    """A statement in the queue, with its proof or a future of it."""

    statement: Statement
    proof: "asyncio.Future[Proven | None] | Proven | None" = None
    silent: bool = False  # a refusal or a repetition: nothing is lost if it is dropped
    around: "tuple[_Entry, ...]" = ()  # the headings, lead-ins and items that enclose it
    as_written: bool = False  # it may be shown as the writer wrote it
    below: "tuple[_Entry, ...]" = ()  # the code blocks of the book that were written directly below it

    @property
    def code(self) -> tuple[Proven, ...]:
        """The code blocks below it that may still be shown."""
        return tuple(one.proof for one in self.below if isinstance(one.proof, Proven))


class Gate:
    """Proves the statements of one answer."""

    def __init__(
        self,
        evidence: Evidence,
        judge: Judge | None,
        *,
        deadline: float,
        is_refusal: Callable[[str], bool] = lambda text: False,
    ) -> None:
        self.counts = Counts()
        self.usage = JudgeUsage()
        self.finished: Finished | None = None  # the usage of the writer, once it has finished
        self._evidence = evidence
        self._judging = JudgeQueue(judge, evidence, deadline, self.usage) if judge else None
        self._is_refusal = is_refusal
        self._assembly = Assembly()
        self._said: set[tuple[str, frozenset[UnitRef]]] = set()  # texts with the units that they name
        self._shown: set[UnitRef] = set()  # units whose words the reader has seen
        self._before = ""  # the statement written last
        self._around: list[_Entry] = []  # the headings, lead-ins and items that enclose what is being written
        self._quoted_before: UnitRef | None = None  # the unit that the statement written last quotes
        self._statements = self._repeats = 0
        self._entries: asyncio.Queue[_Entry | None] = asyncio.Queue()
        self._pumping: asyncio.Task[None] | None = None  # reads from the writer
        # Rebuilt when passages were added.
        self._known = lru_cache(lambda passages: Known(evidence))
        self._quotable = lru_cache(lambda passages: _by_words(evidence.all_units()))

    @property
    def truncated(self) -> bool:
        """Whether a limit ended the answer."""
        return self._statements >= MAX_STATEMENTS or self._repeats >= MAX_REPEATS or self.counts.shown >= MAX_SHOWN

    def prove(self, drafts: Drafts) -> AsyncGenerator[Proven, None]:
        """Return the drafts that may be shown, in order. The writer starts at once, before the first is requested; its
        errors are raised after what was proven before. A caller that may stop early must call `close`."""
        self._pumping = asyncio.create_task(self._pump(drafts))
        return self._proven(self._pumping)

    async def close(self) -> None:
        """Cancel the writer and the judge's calls."""
        if self._pumping:
            self._pumping.cancel()
            await asyncio.gather(self._pumping, return_exceptions=True)
        if self._judging:
            await self._judging.close()

    async def _proven(self, pumping: "asyncio.Task[None]") -> AsyncGenerator[Proven, None]:
        try:
            while (entry := await self._entries.get()) is not None:
                for proven in await self._decide(entry):
                    yield self._counted(proven)
                if self.counts.shown >= MAX_SHOWN:
                    return
            await pumping
            for proven in self._assembly.finish():
                yield self._counted(proven)
        finally:
            await self.close()

    async def _pump(self, drafts: Drafts) -> None:
        """Read from the writer and queue its statements for judging, while earlier ones wait for their verdicts."""
        waiting: list[_Entry] = []  # a statement, and the code directly below it
        try:
            async with aclosing(drafts):
                async for draft in drafts:
                    if isinstance(draft, Finished):
                        self.finished = draft
                        continue
                    waiting.append(self._examine(draft))
                    if not waiting[-1].statement.above_code:
                        self._queue(waiting)
                    if self.truncated:
                        break
            self._queue(waiting)
            if self._judging:
                self._judging.flush()
        finally:
            self._entries.put_nowait(None)

    def _examine(self, draft: Statement | Proven) -> _Entry:
        """Return a draft in its place, with the proof that can be found at once."""
        self._statements += 1
        if isinstance(draft, Proven):
            return _Entry(draft.statement, draft)
        entry = _Entry(draft, around=self._enclose(draft))
        if draft.leads or (draft.shape == "item" and draft.opens):
            self._around.append(entry)
        entry.silent = self._is_refusal(draft.text) or self._is_repeated(draft)
        if draft.shape == "code" and not entry.silent:
            code, units = proven_code(draft.text, self._evidence.all_units())
            entry.proof = Proven(replace(draft, text=code), "quoted", units) if units else None
        return entry

    def _queue(self, waiting: list[_Entry]) -> None:
        """Queue the entries that waited for each other, and ask the judge about those that are not proven."""
        for at, entry in enumerate(waiting):
            if entry.statement.shape == "code":
                shown = entry.proof if isinstance(entry.proof, Proven) else entry
                self._before, self._quoted_before = _with_code(self._before, [shown.statement]), None
            elif not entry.silent and entry.proof is None:
                below = takewhile(lambda one: one.statement.shape == "code", waiting[at + 1 :])
                entry.below = tuple(one for one in below if one.proof)
                entry.proof = self._prove(entry)
            self._entries.put_nowait(entry)
        waiting.clear()

    def _prove(self, entry: _Entry) -> "asyncio.Future[Proven | None] | Proven | None":
        draft, before = entry.statement, self._before[-CONTEXT_CHARS:]
        self._before = draft.text
        quoted = self._quoted(draft) or self._quoted_with_code(entry)
        self._quoted_before = quoted.units[0].ref if quoted else None
        names, known = not speaks_of_absence(draft.text), self._known(len(self._evidence.passages))
        if quoted or len(draft.text) >= MAX_STATEMENT_CHARS or missing_in(draft, known, names=names):
            return quoted
        around = tuple(one.statement.text[:CONTEXT_CHARS] for one in entry.around[-MAX_AROUND:])
        return self._judging.ask(draft, before, around, entry.code) if self._judging else None

    def _enclose(self, statement: Statement) -> "tuple[_Entry, ...]":
        """Leave the headings, lead-ins and items that this statement is not part of, and return the others."""
        self._around = [one for one in self._around if _encloses(one.statement, statement)]
        return tuple(self._around)

    def _is_repeated(self, statement: Statement) -> bool:
        """Whether a text was written before with the same units. With other units it may be a step for another case."""
        words = comparable(statement.text)
        said = (words, frozenset(statement.named))
        kept = statement.leads or statement.above_code or statement.shape == "code"  # what follows needs it
        repeated = said in self._said and len(words.split()) >= REPEATED_WORDS and not kept
        self._said.add(said)
        self._repeats += repeated
        return repeated

    def _quoted(self, statement: Statement) -> Proven | None:
        """Return the statement as a quote, if its words are those of one unit. An item says too little without its
        lead-in, so it must be judged if there is a judge. A unit that refers back means the same only directly after
        the unit before it."""
        said = comparable(statement.text)
        words = sum(token.isalnum() for token in said.split())
        if words < 3 or statement.leads or (statement.shape == "item" and self._judging):
            return None
        unit = self._quotable(len(self._evidence.passages)).get(said)
        if unit is None:
            return None
        follows = self._quoted_before == unit.ref._replace(unit=unit.ref.unit - 1)
        return Proven(statement, "quoted", (unit,)) if follows or not begins_dangling(unit.text) else None

    def _quoted_with_code(self, entry: _Entry) -> Proven | None:
        """Return a statement as a quote, if the book has its words directly above the same code. What encloses it must
        be judged with it if there is a judge, and so must a line such as "Run this:", which says too little alone."""
        statement, said = entry.statement, comparable(entry.statement.text)
        alone = bool(stems(statement.text) & stems(self._evidence.question)) and not entry.around
        if not entry.below or begins_dangling(statement.text) or (self._judging and not alone):
            return None
        under = [unit for unit in self._evidence.all_units() if comparable(without_mark(unit.head)) == said]
        same = [next((one for one in under if is_whole_code(code.statement.text, one)), None) for code in entry.code]
        units = [unit for unit in same if unit]
        if len(units) < len(same) or len({(unit.ref.passage, unit.head_start) for unit in units}) > 1:
            return None
        return Proven(statement, "quoted", (*self._line_above(units[0]), *units))

    def _line_above(self, code: IssuedUnit) -> list[IssuedUnit]:
        """Return the unit that introduces a code block, if it was issued."""
        units = self._evidence.passages[code.ref.passage - 1].units
        return [unit for unit in units if unit.start == code.head_start]

    async def _decide(self, entry: _Entry) -> list[Proven]:
        proof = await entry.proof if isinstance(entry.proof, asyncio.Future) else entry.proof
        statement = entry.statement
        if proof is None or self._assembly.dangles(proof):
            proof = None if entry.silent else self._instead(entry, proof)
        else:
            entry.as_written = True
        if proof is not None:
            return self._assembly.add(proof, statement)
        self.counts.withheld += not entry.silent and not statement.leads
        return self._assembly.withhold(statement)

    def _counted(self, proven: Proven) -> Proven:
        self.counts.shown += proven.kind != "frame"
        self.counts.replaced += proven.replaced
        if proven.kind == "quoted":
            self.counts.quoted += 1
            self._shown.update(unit.ref for unit in proven.units)
        return proven

    def _instead(self, entry: _Entry, proof: Proven | None) -> Proven | None:
        """Return a quote of the units that a statement named. Code that was judged with the statement is withheld with
        it, or quoted below the line that introduces it in the book."""
        statement, quote = entry.statement, None
        if entry.below and (proof or (self._judging and entry.proof in self._judging.rejected)):
            code = [unit for one in entry.code for unit in one.units if Statement(unit.head).leads]
            quote = self._replacement(entry, code[:1])
            for one in entry.below:
                one.proof, one.silent = None, quote is not None
        named: Sequence[IssuedUnit] = proof.units if proof else ()
        if not named:
            whole = [unit for unit in self._evidence.units_of(statement.named) if unit.kind != "code"]
            named = _cited(statement, self._evidence, whole, REPLACING_SHARE)
        return quote or self._replacement(entry, [unit for unit in named if unit.kind != "code" or not entry.below])

    def _replacement(self, entry: _Entry, named: Sequence[IssuedUnit]) -> Proven | None:
        """Return a quote of units instead of a statement, if they fit the question and its place in a list, and were
        not shown yet. A line that introduces something is quoted only above its code."""
        statement = entry.statement
        if statement.shape in ("heading", "code") or speaks_of_absence(statement.text):
            return None
        heads = {(unit.ref.passage, unit.head_start) for code in entry.code for unit in code.units}
        units = [
            unit
            for unit in named
            if unit.ref not in self._shown
            and self._fits(unit, statement)
            and (not Statement(unit.text).leads or heads == {(unit.ref.passage, unit.start)})
        ]
        units = self._understandable(units[:QUOTED_UNITS])
        if statement.shape == "item":
            leads = {comparable(without_mark(unit.head)) for unit in units}
            units = units if all({comparable(lead)} == leads for lead in _leads(entry)) else []
        if not units or sum(len(unit.model_text) for unit in units) > QUOTED_CHARS:
            return None
        shape: Shape = "item" if statement.shape == "item" else "paragraph"
        quoted = [unit for unit in units if unit.kind != "code"]
        text = " ".join(map(_as_sentence, quoted))
        if not quoted:  # code is quoted unchanged
            shape, quoted, text = "excerpt", [*self._line_above(units[0]), units[0]], _code_in_book(units[0])
        opens = statement.opens or statement.shape != shape
        said = replace(statement, text=text, shape=shape, opens=opens, row="", head="", above_code=False)
        return Proven(said, "quoted", tuple(quoted), replaced=True)

    def _fits(self, unit: IssuedUnit, statement: Statement) -> bool:
        """Whether a unit shares words with the question, and covers half of it or is similar to the statement."""
        passage = self._evidence.passages[unit.ref.passage - 1]
        asked = stems(self._evidence.question)
        own = stems(_code_in_book(unit) if unit.kind == "code" else f"{unit.head} {unit.model_text}")
        covered = len(asked & (own | stems(passage.breadcrumb))) * 2 >= len(asked)
        return bool(asked & own) and (covered or word_share(statement.text, unit) >= 0.3)

    def _understandable(self, units: list[IssuedUnit]) -> list[IssuedUnit]:
        """Return the units in order. One that refers back gets the unit before it; if it cannot, it is dropped."""
        wanted: dict[UnitRef, IssuedUnit] = {}
        near = {unit.ref: unit for unit in self._evidence.around(units)}
        for unit in sorted(units, key=lambda unit: unit.ref):
            before = near.get(unit.ref._replace(unit=unit.ref.unit - 1))
            if begins_dangling(unit.text) and not (before and before.ref in wanted):
                if before is None or begins_dangling(before.text) or before.kind not in ("sentence", "item"):
                    continue
                wanted[before.ref] = before
            wanted[unit.ref] = unit
        return list(wanted.values())


@dataclass(slots=True)
class _Claim:
    """A statement that the judge is asked about."""

    statement: Statement
    before: str  # the statement before it, to which it may refer
    around: tuple[str, ...]  # the headings, lead-ins and items that enclose it
    named: Sequence[IssuedUnit]
    shown: Sequence[IssuedUnit]  # units that the judge sees
    text: str  # the statement, with the code directly below it
    proof: "asyncio.Future[Proven | None]" = field(repr=False)


class JudgeQueue:
    """Asks the judge about the statements of one answer, several in one call, while more are being written."""

    def __init__(self, judge: Judge, evidence: Evidence, deadline: float, usage: JudgeUsage) -> None:
        self._judge, self._evidence, self._deadline, self._usage = judge, evidence, deadline, usage
        self._waiting: list[_Claim] = []
        self._most = MAX_CLAIMS  # of one call
        self._calls: set[asyncio.Task[None]] = set()
        self._proofs: list[asyncio.Future[Proven | None]] = []
        self.rejected: set[object] = set()  # the futures of the statements that the judge did not support

    def ask(
        self, statement: Statement, before: str = "", around: tuple[str, ...] = (), code: Sequence[Proven] = ()
    ) -> "asyncio.Future[Proven | None]":
        """Return a future of the proof of a statement with the code below it, which is None if it is not proven."""
        named = self._evidence.units_of(statement.named)
        shown: Sequence[IssuedUnit] = self._evidence.around(named)
        if not named or speaks_of_absence(statement.text):  # the judge sees all units; the best passages come first
            shown = fitting(self._evidence.all_units(), lambda unit: len(unit.model_text), MAX_EVIDENCE_CHARS)
        proof: asyncio.Future[Proven | None] = asyncio.get_running_loop().create_future()
        self._proofs.append(proof)
        shown = [*shown, *self._evidence.around(unit for one in code for unit in one.units)]
        text = _with_code(statement.text, [one.statement for one in code])
        self._waiting.append(_Claim(statement, before, around, named, shown, text, proof))
        if len(self._calls) < AT_ONCE:
            self._start_call()
        return proof

    def flush(self) -> None:
        """Spread the waiting statements over more calls, because no more will follow."""
        self._most = max(1, min(MAX_CLAIMS, -(-len(self._waiting) // AT_ONCE)))
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._start_call()

    async def close(self) -> None:
        """Cancel the running calls. If all statements are decided, the calls may finish: a reply that was read to its
        end leaves a connection for the next answer."""
        calls, self._waiting = set(self._calls), []
        if all(proof.done() for proof in self._proofs):
            _CALLS_LEFT.update(calls)
            return
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _start_call(self) -> None:
        call = asyncio.create_task(self._call())
        self._calls.add(call)
        call.add_done_callback(self._end_call)

    def _end_call(self, call: "asyncio.Task[None]") -> None:
        self._calls.discard(call)
        _CALLS_LEFT.discard(call)
        if self._waiting:
            self._start_call()

    async def _call(self) -> None:
        """Ask about as many waiting statements as one call takes. A failed call is repeated once; what has no verdict
        after that is not proven."""
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            async with asyncio.timeout_at(self._deadline):
                if batch and not await self._asked(batch):
                    await self._asked([one for one in batch if not one.proof.done()])
        except TimeoutError:
            log.info("the judge did not answer before the answer was due")
        except Exception:  # a bug must not leave the reader waiting
            log.exception("a call to the judge failed")
        finally:
            for claim in batch:
                if not claim.proof.done():
                    claim.proof.set_result(None)

    async def _asked(self, batch: Sequence[_Claim]) -> bool:
        """Ask the judge about a batch. Returns whether it need not be asked again."""
        units = {unit.ref: unit for claim in batch for unit in claim.shown}
        claims = [claim.text for claim in batch]
        case = JudgeRequest(
            evidence=list(self._evidence.lines(units.values())),
            claims=claims,
            question=self._evidence.question,
            before=[_text_before(one, claims) for one in batch],
        )
        try:
            async with aclosing(self._judge.verdicts(case, self._usage)) as verdicts:
                async for verdict in verdicts:
                    claim = batch[verdict.claim - 1]
                    if verdict.reason:
                        log.debug("the judge says of claim %d: %s", verdict.claim, verdict.reason)
                    if not claim.proof.done() and (verdict.complete or _is_decided(claim, verdict)):
                        if not verdict.supported:
                            self.rejected.add(claim.proof)
                        claim.proof.set_result(self._proven(claim, verdict, units))
        except AgentUnavailable as failure:
            log.info("the judge failed: %s", failure.message)
            return not failure.retryable or all(claim.proof.done() for claim in batch)
        return True

    def _proven(self, claim: _Claim, verdict: Verdict, shown: dict[UnitRef, IssuedUnit]) -> Proven | None:
        """Turn a verdict into a proof; None if there is none. Units that the judge was not shown are ignored."""
        statement, is_absence = claim.statement, speaks_of_absence(claim.statement.text)
        if not verdict.supported:
            return None
        if is_absence and not claim.named and not _SAYS_MORE.search(statement.text):
            return Proven(statement, "absence")  # whichever units the judge names
        refs = [UnitRef(*map(int, number.split("."))) for number in verdict.units]
        units: Sequence[IssuedUnit] = [unit for unit in self._evidence.units_of(refs) if unit.ref in shown]
        if not units and not is_absence and (claim.named or not statement.leads):
            units = _cited(statement, self._evidence, claim.named, 0.0)
            units = units or _cited(statement, self._evidence, self._evidence.all_units(), NEAREST_SHARE)
        if units:
            return Proven(statement, "supported", tuple(units))
        if statement.leads or not stems(statement.text):  # "Yes." says nothing without what follows it
            return Proven(statement, "frame")
        return Proven(statement, "absence") if _NEGATION.search(statement.text) else None


def _encloses(one: Statement, statement: Statement) -> bool:
    """Whether a heading, a lead-in or an item still applies to a statement that is written after it."""
    if one.shape == "heading":
        return one.depth <= statement.depth and (statement.shape != "heading" or one.level < statement.level)
    if one.depth != statement.depth:
        return one.depth < statement.depth
    if one.shape == "item" and not statement.opens:
        return statement.shape == "item"
    # Bullets that belong to a numbered step may stand below it without an indent.
    same_list = one.shape == "item" and one.marker[:1].isdigit() == statement.marker[:1].isdigit()
    return one.leads and statement.shape in ("item", "row") and not same_list


def _leads(entry: _Entry) -> list[str]:
    """Return the lead-ins and parents of an item that are shown as the writer wrote them: they may turn the meaning of
    what stands below them."""
    over = [one.statement for one in entry.around if one.as_written and one.statement.shape != "heading"]
    return [one.text for one in over if one.leads or one.depth < entry.statement.depth]


def _with_code(text: str, code: Sequence[Statement]) -> str:
    """Return a text with code blocks below it, as the judge reads them."""
    return "\n".join([text, *(f"```\n{one.text}\n```" for one in code)])


def _text_before(claim: _Claim, claims: Sequence[str]) -> str:
    """Return what a claim may refer to. The judge reads the claims in order, so one before it need not be repeated."""
    before = "" if claim.before in claims else claim.before
    return " › ".join(dict.fromkeys(filter(None, (*claim.around, before))))


def _is_decided(claim: _Claim, verdict: Verdict) -> bool:
    """Whether a verdict counts before its units arrive: it is negative, or the statement itself names its units."""
    named = bool(claim.named) and any(ref.unit for ref in claim.statement.named)
    return not verdict.supported or (named and not speaks_of_absence(claim.statement.text))


@lru_cache(maxsize=256)
def speaks_of_absence(text: str) -> bool:
    """Whether a statement seems to say that the book or the passages do not say something."""
    return _ABSENCE.search(text) is not None


def _cited(statement: Statement, evidence: Evidence, units: Sequence[IssuedUnit], least: float) -> Sequence[IssuedUnit]:
    """Return the units that a statement names individually. If it names none, return the one of `units` that has most
    of its words, if it has at least `least` of them."""
    best = max(units, key=lambda unit: word_share(statement.text, unit), default=None)
    nearest = [best] if best and word_share(statement.text, best) >= least else []
    return evidence.units_of(ref for ref in statement.named if ref.unit) or nearest


def word_share(text: str, unit: IssuedUnit) -> float:
    """Return the share of a text's content stems that a unit has."""
    wanted = stems(text)
    return len(wanted & stems(f"{unit.head} {unit.model_text}")) / len(wanted) if wanted else 0.0


def _by_words(units: Sequence[IssuedUnit]) -> dict[str, IssuedUnit]:
    """Map the words of units that can be understood alone to the first such unit. A row includes its column names."""
    own = [unit for unit in reversed(units) if unit.kind == "row" or not unit.head]
    return {comparable(without_mark(unit.model_text)): unit for unit in own}


def _code_in_book(unit: IssuedUnit) -> str:
    """Return a code unit below the line that introduces it, if there is one."""
    return f"{without_mark(unit.head)}\n\n{unit.text}" if Statement(unit.head).leads else unit.text


def _as_sentence(unit: IssuedUnit) -> str:
    """Return the text of a unit on one line, after its lead-in."""
    said = unit.model_text if unit.kind == "row" else f"{without_mark(unit.head)} {without_mark(unit.model_text)}"
    return " ".join(said.split())
