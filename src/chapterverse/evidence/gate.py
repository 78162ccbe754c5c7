"""The gate between a writer and the reader: statements go in, proven statements come out, in order.

The order of proof is that of SPEC 4.4: quoted words of the book; exact things; the judge. Statements are judged while
the writer goes on, several in one call, and each is passed on as soon as its verdict is there and everything before it
was passed on. A statement that is not proven is replaced by the units that it named, quoted, or withheld.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from chapterverse.errors import AgentUnavailable
from chapterverse.evidence.assembly import Assembly, begins_dangling, without_mark
from chapterverse.evidence.citations import Proven
from chapterverse.evidence.exact import Known, comparable, missing, proven_code
from chapterverse.evidence.judge import Judge, JudgeRequest, JudgeUsage, Verdict
from chapterverse.evidence.passages import Evidence, IssuedUnit, fitting
from chapterverse.evidence.statement import Finished, Shape, Statement, UnitRef
from chapterverse.language import stems

log = logging.getLogger(__name__)

Drafts = AsyncGenerator[Statement | Proven | Finished, None]

MAX_STATEMENTS: Final = 200  # looked at, shown or not
MAX_SHOWN: Final = 60
MAX_STATEMENT_CHARS: Final = 1500  # what is longer is no sentence
MAX_REPEATS: Final = 4  # a model that repeats itself has lost its way
REPEATED_WORDS: Final = 5  # shorter items stand in several lists, and a command in several steps
MAX_EVIDENCE_CHARS: Final = 24_000  # of one call to the judge
MAX_CLAIMS: Final = 12  # of one call
AT_ONCE: Final = 3  # calls to the judge; at the end as many more, among which the last statements are spread
QUOTED_UNITS: Final = 3  # that may stand for one statement
QUOTED_CHARS: Final = 700
NEAREST_SHARE: Final = 0.2  # of a supported statement's words, in the unit that is cited where the judge names none
REPLACING_SHARE: Final = 0.5  # of a statement's words, in the unit that replaces it where it names a passage alone
CONTEXT_CHARS: Final = 600  # of the text before a claim

_CALLS_LEFT: Final[set[asyncio.Task[None]]] = set()  # calls to the judge that end after their answer

# What a statement has that says what is not there, or that it must be looked for elsewhere.
_NEGATION = re.compile(
    r"\b(?:not|no|nor|none|nothing|never|neither|without|cannot|only|un\w+ed|lacks?|elsewhere)\b|n['’]t\b"
    r"|(?:\bwould|['’]d) (?:need|have)\b",
    re.IGNORECASE,
)
# "The passages do not say …": the narrow rule for a statement about what the book does not say.
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
    """What became of an answer's statements."""

    shown: int = 0  # frames are not counted
    quoted: int = 0
    withheld: int = 0
    replaced: int = 0


@dataclass(slots=True)
class _Entry:
    """A statement on its way, and what will be known of it."""

    statement: Statement
    proof: "asyncio.Future[Proven | None] | Proven | None"
    silent: bool = False  # says nothing that could be missed: a refusal, a repetition


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
        self.finished: Finished | None = None  # what writing took, once the writer has said so
        self._evidence = evidence
        self._judging = JudgeQueue(judge, evidence, deadline, self.usage) if judge else None
        self._is_refusal = is_refusal
        self._assembly = Assembly()
        self._said: set[str] = set()
        self._shown: set[UnitRef] = set()  # units whose words the reader has seen
        self._before = ""  # the statement written last
        self._lead = ""  # the line that introduces the list or table that is being written
        self._quoted_before: UnitRef | None = None  # the unit that the statement written last quotes
        self._statements = self._repeats = 0
        self._entries: asyncio.Queue[_Entry | None] = asyncio.Queue()
        self._pumping: asyncio.Task[None] | None = None  # from the writer
        # Made anew when there are more passages.
        self._known = lru_cache(lambda passages: Known(evidence))
        self._quotable = lru_cache(lambda passages: _by_words(evidence.all_units()))

    @property
    def truncated(self) -> bool:
        """Whether a limit ended the answer."""
        return self._statements >= MAX_STATEMENTS or self._repeats >= MAX_REPEATS or self.counts.shown >= MAX_SHOWN

    def prove(self, drafts: Drafts) -> AsyncGenerator[Proven, None]:
        """What may be shown of the drafts, in order. The writer begins at once, before anybody asks for the first; an
        error of it is raised after what was proven before. Whoever may not read to the end must `close`."""
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
        """Take what the writer writes, and have it judged, while earlier statements wait for their verdicts."""
        try:
            async with aclosing(drafts):
                async for draft in drafts:
                    if isinstance(draft, Finished):
                        self.finished = draft
                        continue
                    self._entries.put_nowait(self._examine(draft))
                    if self.truncated:
                        break
            if self._judging:
                self._judging.flush()
        finally:
            self._entries.put_nowait(None)

    def _examine(self, draft: Statement | Proven) -> _Entry:
        """What can be decided at once, and else the question to the judge."""
        self._statements += 1
        if isinstance(draft, Proven):
            return _Entry(draft.statement, draft)
        if self._is_refusal(draft.text) or self._is_repeated(draft):
            return _Entry(draft, None, silent=True)
        context = self._context(draft)
        if draft.shape == "code":
            self._quoted_before = None
            code, units = proven_code(draft.text, self._evidence.all_units())
            return _Entry(draft, Proven(replace(draft, text=code), "quoted", units) if units else None)
        quoted = self._quoted(draft)
        self._quoted_before = quoted.units[0].ref if quoted else None
        names, known = not speaks_of_absence(draft.text), self._known(len(self._evidence.passages))
        if quoted or len(draft.text) >= MAX_STATEMENT_CHARS or missing(draft.text, known, names=names):
            return _Entry(draft, quoted)
        return _Entry(draft, self._judging.ask(draft, context) if self._judging else None)

    def _context(self, statement: Statement) -> tuple[str, ...]:
        """What a statement may refer to: the line that introduces its list or table, and the statement before it."""
        if statement.shape not in ("item", "row"):
            self._lead = ""
        context = tuple(text[-CONTEXT_CHARS:] for text in dict.fromkeys((self._lead, self._before)) if text)
        self._before = statement.text
        self._lead = statement.text if statement.leads and statement.shape != "heading" else self._lead
        return context

    def _is_repeated(self, statement: Statement) -> bool:
        said = comparable(statement.text)
        repeated = said in self._said and len(said.split()) >= REPEATED_WORDS and statement.shape != "code"
        self._said.add(said)
        self._repeats += repeated
        return repeated

    def _quoted(self, statement: Statement) -> Proven | None:
        """The statement as quoted words, if they are the words of one unit. An item says too little without the line
        that introduces it, here and in the book, so it must be judged where there is a judge. A unit that points back
        means the same only right after the unit before it."""
        said = comparable(statement.text)
        words = sum(token.isalnum() for token in said.split())
        if words < 3 or statement.leads or (statement.shape == "item" and self._judging):
            return None
        unit = self._quotable(len(self._evidence.passages)).get(said)
        if unit is None:
            return None
        follows = self._quoted_before == unit.ref._replace(unit=unit.ref.unit - 1)
        return Proven(statement, "quoted", (unit,)) if follows or not begins_dangling(unit.text) else None

    async def _decide(self, entry: _Entry) -> list[Proven]:
        proof = await entry.proof if isinstance(entry.proof, asyncio.Future) else entry.proof
        statement = entry.statement
        if proof is None or self._assembly.dangles(statement):
            proof = None if entry.silent else self._replacement(statement, proof)
        if proof is not None:
            return self._assembly.add(proof)
        self.counts.withheld += not entry.silent and not statement.leads
        return self._assembly.withhold(statement)

    def _counted(self, proven: Proven) -> Proven:
        self.counts.shown += proven.kind != "frame"
        self.counts.replaced += proven.replaced
        if proven.kind == "quoted":
            self.counts.quoted += 1
            self._shown.update(unit.ref for unit in proven.units)
        return proven

    def _replacement(self, statement: Statement, proof: Proven | None) -> Proven | None:
        """The units that a statement named, quoted, where they fit the question and were not shown yet."""
        if statement.shape in ("heading", "code") or speaks_of_absence(statement.text):
            return None
        named: Sequence[IssuedUnit] = proof.units if proof else ()
        if not named:
            whole = [unit for unit in self._evidence.units_of(statement.named) if unit.kind != "code"]
            named = _cited(statement, self._evidence, whole, REPLACING_SHARE)
        units = [unit for unit in named if unit.ref not in self._shown and self._fits(unit, statement)][:QUOTED_UNITS]
        units = self._understandable(units)
        if not units or sum(len(unit.model_text) for unit in units) > QUOTED_CHARS:
            return None
        shape: Shape = "item" if statement.shape == "item" else "paragraph"
        quoted = [unit for unit in units if unit.kind != "code"]
        text = " ".join(map(_as_sentence, quoted))
        if not quoted:  # code is quoted as it stands
            shape, quoted, text = "excerpt", units[:1], units[0].text
        opens = statement.opens or statement.shape != shape
        said = replace(statement, text=text, shape=shape, opens=opens, row="", head="")
        return Proven(said, "quoted", tuple(quoted), replaced=True)

    def _fits(self, unit: IssuedUnit, statement: Statement) -> bool:
        """Whether a unit speaks of what was asked, or says nearly what the statement says."""
        passage = self._evidence.passages[unit.ref.passage - 1]
        asked = stems(self._evidence.question)
        own = stems(unit.model_text if unit.kind == "code" else f"{unit.head} {unit.model_text}")
        covered = len(asked & (own | stems(passage.breadcrumb))) * 2 >= len(asked)
        return bool(asked & own) and (covered or _share(statement.text, unit) >= 0.3)

    def _understandable(self, units: list[IssuedUnit]) -> list[IssuedUnit]:
        """The units in their order, each that points back with the one before it."""
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
    context: tuple[str, ...]  # texts before it that it may refer to
    named: Sequence[IssuedUnit]
    shown: Sequence[IssuedUnit]  # to the judge
    proof: "asyncio.Future[Proven | None]" = field(repr=False)


class JudgeQueue:
    """Asks the judge about the statements of one answer, several in one call, while more are being written."""

    def __init__(self, judge: Judge, evidence: Evidence, deadline: float, usage: JudgeUsage) -> None:
        self._judge, self._evidence, self._deadline, self._usage = judge, evidence, deadline, usage
        self._waiting: list[_Claim] = []
        self._most = MAX_CLAIMS  # of one call
        self._calls: set[asyncio.Task[None]] = set()
        self._proofs: list[asyncio.Future[Proven | None]] = []

    def ask(self, statement: Statement, context: tuple[str, ...] = ()) -> "asyncio.Future[Proven | None]":
        """The proof of a statement, once the judge has spoken; None if it is not proven."""
        named = self._evidence.units_of(statement.named)
        shown: Sequence[IssuedUnit] = self._evidence.around(named)
        if not named or speaks_of_absence(statement.text):  # the judge sees all units; the best passages come first
            shown = fitting(self._evidence.all_units(), lambda unit: len(unit.model_text), MAX_EVIDENCE_CHARS)
        proof: asyncio.Future[Proven | None] = asyncio.get_running_loop().create_future()
        self._proofs.append(proof)
        self._waiting.append(_Claim(statement, context, named, shown, proof))
        if len(self._calls) < AT_ONCE:
            self._start_call()
        return proof

    def flush(self) -> None:
        """Spread all that waits over more calls, because nothing more will be written."""
        self._most = max(1, min(MAX_CLAIMS, -(-len(self._waiting) // AT_ONCE)))
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._start_call()

    async def close(self) -> None:
        """Cancel the calls that are under way. Where all is decided, they may end by themselves: a reply that was read
        to its end leaves a connection for the next answer."""
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
        """Ask about what waits, as much as one call takes. A call that fails is made a second time; whatever is not
        answered then is not proven."""
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            async with asyncio.timeout_at(self._deadline):
                if batch and not await self._asked(batch):
                    await self._asked([one for one in batch if not one.proof.done()])
        except TimeoutError:
            log.info("the judge did not answer before the answer was due")
        except Exception:  # an error of ours must not leave the reader waiting
            log.exception("a call to the judge failed")
        finally:
            for claim in batch:
                if not claim.proof.done():
                    claim.proof.set_result(None)

    async def _asked(self, batch: Sequence[_Claim]) -> bool:
        """Whether the judge need not be asked again."""
        units = {unit.ref: unit for claim in batch for unit in claim.shown}
        claims = [claim.statement.text for claim in batch]
        case = JudgeRequest(
            evidence=list(self._evidence.lines(units.values())),
            claims=claims,
            question=self._evidence.question,
            before=[" ".join(text for text in one.context if text not in claims) for one in batch],
        )
        try:
            async with aclosing(self._judge.verdicts(case, self._usage)) as verdicts:
                async for verdict in verdicts:
                    claim = batch[verdict.claim - 1]
                    if verdict.reason:
                        log.debug("the judge says of claim %d: %s", verdict.claim, verdict.reason)
                    if not claim.proof.done() and (verdict.complete or _is_decided(claim, verdict)):
                        claim.proof.set_result(self._proven(claim, verdict, units))
        except AgentUnavailable as failure:
            log.info("the judge failed: %s", failure.message)
            return not failure.retryable or all(claim.proof.done() for claim in batch)
        return True

    def _proven(self, claim: _Claim, verdict: Verdict, shown: dict[UnitRef, IssuedUnit]) -> Proven | None:
        """What a verdict makes of a statement. Unit numbers that the judge was not shown count for nothing."""
        statement, is_absence = claim.statement, speaks_of_absence(claim.statement.text)
        if not verdict.supported:
            return None
        if is_absence and not claim.named and not _SAYS_MORE.search(statement.text):
            return Proven(statement, "absence")  # whatever units the judge looked at
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


def _is_decided(claim: _Claim, verdict: Verdict) -> bool:
    """Whether the units of a verdict need not be waited for: a no, or a statement that names its units itself."""
    named = bool(claim.named) and any(ref.unit for ref in claim.statement.named)
    return not verdict.supported or (named and not speaks_of_absence(claim.statement.text))


@lru_cache(maxsize=256)
def speaks_of_absence(text: str) -> bool:
    """Whether a statement seems to say that the book or the passages do not say something."""
    return _ABSENCE.search(text) is not None


def _cited(statement: Statement, evidence: Evidence, units: Sequence[IssuedUnit], least: float) -> Sequence[IssuedUnit]:
    """The units that a statement names one by one. If it names none, that of these units which has most of its words,
    if it has enough."""
    best = max(units, key=lambda unit: _share(statement.text, unit), default=None)
    nearest = [best] if best and _share(statement.text, best) >= least else []
    return evidence.units_of(ref for ref in statement.named if ref.unit) or nearest


def _share(text: str, unit: IssuedUnit) -> float:
    """The share of a text's content stems that a unit has."""
    wanted = stems(text)
    return len(wanted & stems(f"{unit.head} {unit.model_text}")) / len(wanted) if wanted else 0.0


def _by_words(units: Sequence[IssuedUnit]) -> dict[str, IssuedUnit]:
    """The units that can be understood alone by their words; the first counts. A row has the names of its columns."""
    own = [unit for unit in reversed(units) if unit.kind == "row" or not unit.head]
    return {comparable(without_mark(unit.model_text)): unit for unit in own}


def _as_sentence(unit: IssuedUnit) -> str:
    """A unit's words on one line, with the line that introduces them."""
    said = unit.model_text if unit.kind == "row" else f"{without_mark(unit.head)} {without_mark(unit.model_text)}"
    return " ".join(said.split())
