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

from chapterverse.evidence.assembly import Assembly, points_back, without_mark
from chapterverse.evidence.citations import Proven
from chapterverse.evidence.exact import Known, missing, proven_code, units_with_code
from chapterverse.evidence.judge import Judge, JudgeFailed, JudgeRequest, JudgeUsage, Verdict
from chapterverse.evidence.passages import Evidence, IssuedUnit, fitting
from chapterverse.evidence.statement import Finished, Shape, Statement, UnitRef
from chapterverse.language import stems

log = logging.getLogger(__name__)

Drafts = AsyncGenerator[Statement | Proven | Finished, None]

MAX_STATEMENTS: Final = 200  # looked at, shown or not
MAX_SHOWN: Final = 60
MAX_CHARS: Final = 60_000  # of all statements, about 10,000 words
MAX_STATEMENT_CHARS: Final = 1500  # what is longer is no sentence
MAX_REPEATS: Final = 4  # a model that repeats itself has lost its way
REPEATED_WORDS: Final = 5  # shorter items stand in several lists
MAX_EVIDENCE_CHARS: Final = 24_000  # of one call to the judge
MAX_CLAIMS: Final = 12  # of one call
AT_ONCE: Final = 3  # calls to the judge; at the end as many more, among which the last statements are spread
QUOTED_UNITS: Final = 3  # that may stand for one statement
QUOTED_CHARS: Final = 700
NEAREST_SHARE: Final = 0.2  # of a supported statement's words, in the unit that is cited where the judge names none

_LEAVING: Final[set[asyncio.Task[None]]] = set()  # calls to the judge that end after their answer

_WORD = re.compile(r"\w+")
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
        self.truncated = False  # a limit ended the answer
        self.finished: Finished | None = None  # what writing took, once the writer has said so
        self._evidence = evidence
        self._court = Court(judge, evidence, deadline, self.usage) if judge else None
        self._is_refusal = is_refusal
        self._assembly = Assembly()
        self._said: set[str] = set()
        self._shown: set[UnitRef] = set()  # units whose words the reader has seen
        self._chars = self._statements = self._repeats = 0
        self._pumping: asyncio.Task[None] | None = None  # from the writer
        # Made anew when there are more passages.
        self._known = lru_cache(lambda passages: Known(evidence))
        self._quotable = lru_cache(lambda passages: _by_words(evidence.all_units()))

    def prove(self, drafts: Drafts) -> AsyncGenerator[Proven, None]:
        """What may be shown of the drafts, in order. The writer begins at once, before anybody asks for the first; an
        error of it is raised after what was proven before. Whoever may not read to the end must `close`."""
        queue: asyncio.Queue[_Entry | None] = asyncio.Queue()
        self._pumping = asyncio.create_task(self._pump(drafts, queue))
        return self._proven(queue, self._pumping)

    async def close(self) -> None:
        """Cancel the writer and the judge's calls."""
        if self._pumping:
            self._pumping.cancel()
            await asyncio.gather(self._pumping, return_exceptions=True)
        if self._court:
            await self._court.close()

    async def _proven(
        self, queue: "asyncio.Queue[_Entry | None]", pumping: "asyncio.Task[None]"
    ) -> AsyncGenerator[Proven, None]:
        try:
            while (entry := await queue.get()) is not None:
                for proven in await self._decide(entry):
                    yield proven
            await pumping
            for proven in self._assembly.finish():
                yield proven
        finally:
            await self.close()

    async def _pump(self, drafts: Drafts, queue: "asyncio.Queue[_Entry | None]") -> None:
        """Take what the writer writes, and have it judged, while earlier statements wait for their verdicts."""
        try:
            async with aclosing(drafts):
                async for draft in drafts:
                    if isinstance(draft, Finished):
                        self.finished = draft
                        continue
                    queue.put_nowait(self._examine(draft))
                    if self.truncated:
                        break
            if self._court:
                self._court.flush()
        finally:
            queue.put_nowait(None)

    def _examine(self, draft: Statement | Proven) -> _Entry:
        """What can be decided at once, and else the question to the judge."""
        statement = draft.statement if isinstance(draft, Proven) else draft
        self._statements += 1
        self._chars += len(statement.text)
        self.truncated = self.truncated or self._statements >= MAX_STATEMENTS or self._chars >= MAX_CHARS
        if isinstance(draft, Proven):
            return _Entry(statement, draft)
        if self._is_refusal(draft.text) or self._is_repeated(draft):
            return _Entry(draft, None, silent=True)
        if draft.shape == "code":
            code = proven_code(draft.text, self._evidence)
            units = units_with_code(code, self._evidence.all_units())
            return _Entry(draft, Proven(replace(draft, text=code), "quoted", tuple(units)) if units else None)
        quoted = self._quoted(draft)
        names, known = not speaks_of_absence(draft.text), self._known(len(self._evidence.passages))
        if quoted or len(draft.text) >= MAX_STATEMENT_CHARS or missing(draft.text, known, names=names):
            return _Entry(draft, quoted)
        return _Entry(draft, self._court.ask(draft) if self._court else None)

    def _is_repeated(self, statement: Statement) -> bool:
        said = _words(statement.text)
        if said not in self._said or len(said.split()) < REPEATED_WORDS:
            self._said.add(said)
            return False
        self._repeats += 1
        self.truncated = self.truncated or self._repeats >= MAX_REPEATS
        return True

    def _quoted(self, statement: Statement) -> Proven | None:
        """The statement as quoted words, if they are the words of one unit. An item says too little without the line
        that introduces it, here and in the book, so it must be judged where there is a judge."""
        words = _words(statement.row or statement.text)
        if len(words.split()) < (2 if statement.row else 3) or statement.leads:
            return None
        if statement.shape == "item" and self._court:
            return None
        unit = self._quotable(len(self._evidence.passages)).get(words)
        return Proven(statement, "quoted", (unit,)) if unit else None

    async def _decide(self, entry: _Entry) -> list[Proven]:
        proof = await entry.proof if isinstance(entry.proof, asyncio.Future) else entry.proof
        statement = entry.statement
        if proof is not None and not self._assembly.dangles(statement):
            return self._show(proof)
        replacement = None if entry.silent else self._replacement(statement, proof)
        if replacement is not None:
            self.counts.replaced += 1
            return self._show(replacement)
        self.counts.withheld += not entry.silent and not statement.leads
        return self._assembly.withhold(statement)

    def _show(self, proven: Proven) -> list[Proven]:
        shown = self._assembly.add(proven)
        quoted = [one for one in shown if one.kind == "quoted"]
        self.counts.shown += sum(one.kind != "frame" for one in shown)
        self.counts.quoted += len(quoted)
        self._shown.update(unit.ref for one in quoted for unit in one.units)
        self.truncated = self.truncated or self.counts.shown >= MAX_SHOWN
        return shown

    def _replacement(self, statement: Statement, proof: Proven | None) -> Proven | None:
        """The units that a statement named, quoted, where they fit the question and were not shown yet."""
        if statement.shape in ("heading", "code") or speaks_of_absence(statement.text):
            return None
        named = proof.units if proof and proof.units else self._named(statement)
        units = [unit for unit in named if unit.ref not in self._shown and self._fits(unit, statement)][:QUOTED_UNITS]
        units = self._understandable(units)
        if not units or sum(len(unit.told) for unit in units) > QUOTED_CHARS:
            return None
        shape: Shape = "item" if statement.shape == "item" else "paragraph"
        quoted = [unit for unit in units if unit.kind != "code"]
        text = " ".join(map(_as_sentence, quoted))
        if not quoted:  # code is quoted as it stands
            shape, quoted, text = "excerpt", units[:1], units[0].text
        opens = statement.opens or statement.shape != shape
        said = replace(statement, text=text, shape=shape, opens=opens, row="", head="")
        return Proven(said, "quoted", tuple(quoted), replaced=True)

    def _named(self, statement: Statement) -> Sequence[IssuedUnit]:
        """The units that a statement names; of a whole passage, the one that is nearest to its words."""
        whole = [unit for unit in self._evidence.units_of(statement.named) if unit.kind != "code"]
        single = self._evidence.units_of(ref for ref in statement.named if ref.unit)
        return single or _nearest(statement.text, whole, least=0.5)

    def _fits(self, unit: IssuedUnit, statement: Statement) -> bool:
        """Whether a unit speaks of what was asked, or says nearly what the statement says."""
        passage = self._evidence.passages[unit.ref.passage - 1]
        asked = stems(self._evidence.question)
        own = stems(unit.told if unit.kind == "code" else f"{unit.head} {unit.told}")
        covered = len(asked & (own | stems(passage.breadcrumb))) * 2 >= len(asked)
        return bool(asked & own) and (covered or _share(statement.text, unit) >= 0.3)

    def _understandable(self, units: list[IssuedUnit]) -> list[IssuedUnit]:
        """The units in their order, each that points back with the one before it."""
        wanted: dict[UnitRef, IssuedUnit] = {}
        near = {unit.ref: unit for unit in self._evidence.around(units)}
        for unit in sorted(units, key=lambda unit: unit.ref):
            before = near.get(unit.ref._replace(unit=unit.ref.unit - 1))
            if points_back(without_mark(unit.text)) and not (before and before.ref in wanted):
                if before is None or points_back(without_mark(before.text)) or before.kind not in ("sentence", "item"):
                    continue
                wanted[before.ref] = before
            wanted[unit.ref] = unit
        return list(wanted.values())


class Court:
    """Asks the judge about the statements of one answer, several in one call, while more are being written."""

    def __init__(self, judge: Judge, evidence: Evidence, deadline: float, usage: JudgeUsage) -> None:
        self._judge, self._evidence, self._deadline, self._usage = judge, evidence, deadline, usage
        self._claims: asyncio.Queue[_Claim] = asyncio.Queue()
        self._most = MAX_CLAIMS  # of one call
        self._workers: list[asyncio.Task[None]] = []
        self._calling: set[asyncio.Task[None]] = set()  # those whose call is under way
        self._undecided: set[asyncio.Future[Proven | None]] = set()
        self._closed = False
        self._before = ""  # the statement written last
        self._lead = ""  # the line that introduces the list or table that is being written

    def ask(self, statement: Statement) -> "asyncio.Future[Proven | None]":
        """The proof of a statement, once the judge has spoken; None if it is not proven."""
        named = self._evidence.units_of(statement.named)
        shown: Sequence[IssuedUnit] = self._evidence.around(named)
        if not named or speaks_of_absence(statement.text):  # the judge sees all units; the best passages come first
            shown = fitting(self._evidence.all_units(), lambda unit: len(unit.told), MAX_EVIDENCE_CHARS)
        if statement.shape not in ("item", "row"):
            self._lead = ""
        context = " ".join(filter(None, dict.fromkeys((self._lead, self._before))))
        claim = _Claim(statement, named, shown, context, asyncio.get_running_loop().create_future())
        self._before = statement.text
        self._lead = statement.text if statement.leads and statement.shape != "heading" else self._lead
        self._undecided.add(claim.proof)
        claim.proof.add_done_callback(self._undecided.discard)
        self._claims.put_nowait(claim)
        if len(self._workers) < AT_ONCE:
            self._hire(1)
        return claim.proof

    def flush(self) -> None:
        """Spread all that waits over more calls, because nothing more will be written."""
        self._most = max(1, min(MAX_CLAIMS, -(-self._claims.qsize() // AT_ONCE)))
        self._hire(min(AT_ONCE, self._claims.qsize()))

    async def close(self) -> None:
        """Cancel the calls that are under way. Where all is decided, they may end by themselves: a reply that was read
        to its end leaves a connection for the next answer."""
        self._closed = True
        leaving = set() if self._undecided else self._calling & set(self._workers)
        for worker in leaving:
            _LEAVING.add(worker)
            worker.add_done_callback(_LEAVING.discard)
        stopped = [worker for worker in self._workers if worker not in leaving]
        for worker in stopped:
            worker.cancel()
        await asyncio.gather(*stopped, return_exceptions=True)

    def _hire(self, workers: int) -> None:
        self._workers += [asyncio.create_task(self._work()) for _ in range(workers)]

    async def _work(self) -> None:
        """Ask about what waits, as much as one call takes, again and again. A call that fails is made a second time;
        whatever is not answered then is not proven."""
        while not self._closed:
            batch = [await self._claims.get()]
            while len(batch) < self._most and not self._claims.empty():
                batch.append(self._claims.get_nowait())
            worker = asyncio.current_task()
            assert worker is not None, "work is done in a task"
            self._calling.add(worker)
            try:
                async with asyncio.timeout_at(self._deadline):
                    if not await self._asked(batch) and (left := [one for one in batch if not one.proof.done()]):
                        await self._asked(left)
            except TimeoutError:
                log.info("the judge did not answer before the answer was due")
            except Exception:  # an error of ours must not leave the reader waiting
                log.exception("a call to the judge failed")
            finally:
                self._calling.discard(worker)
                for claim in batch:
                    if not claim.proof.done():
                        claim.proof.set_result(None)

    async def _asked(self, batch: "Sequence[_Claim]") -> bool:
        """Whether the judge need not be asked again."""
        units = {unit.ref: unit for claim in batch for unit in claim.shown}
        case = JudgeRequest(
            evidence=list(self._evidence.lines(units.values())),
            claims=[claim.statement.text for claim in batch],
            question=self._evidence.question,
            before=batch[0].context,
        )
        try:
            async with aclosing(self._judge.verdicts(case, self._usage)) as verdicts:
                async for verdict in verdicts:
                    claim = batch[verdict.claim - 1]
                    if not claim.proof.done() and (verdict.complete or self._is_decided(claim, verdict)):
                        claim.proof.set_result(self._proven(claim, verdict, units))
        except JudgeFailed as failure:
            log.info("the judge failed: %s", failure)
            return not failure.retryable
        return True

    def _is_decided(self, claim: "_Claim", verdict: Verdict) -> bool:
        """Whether the units of a verdict need not be waited for: a no, or a statement that names its units itself."""
        named = any(ref.unit for ref in claim.statement.named) and not speaks_of_absence(claim.statement.text)
        return not verdict.supported or (named and bool(claim.named))

    def _proven(self, claim: "_Claim", verdict: Verdict, shown: dict[UnitRef, IssuedUnit]) -> Proven | None:
        """What a verdict makes of a statement. Unit numbers that the judge was not shown count for nothing."""
        statement = claim.statement
        if not verdict.supported:
            return None
        if speaks_of_absence(statement.text) and not claim.named and not _SAYS_MORE.search(statement.text):
            return Proven(statement, "absence")  # whatever units the judge looked at
        refs = [UnitRef(*map(int, number.split("."))) for number in verdict.units]
        units = [unit for unit in self._evidence.units_of(refs) if unit.ref in shown]
        if not units and not speaks_of_absence(statement.text):
            units = self._own(claim)
        if units:
            return Proven(statement, "supported", tuple(units))
        if statement.leads or not stems(statement.text):  # "Yes." says nothing without what follows it
            return Proven(statement, "frame")
        return Proven(statement, "absence") if _NEGATION.search(statement.text) else None

    def _own(self, claim: "_Claim") -> list[IssuedUnit]:
        """The units that the statement names, or else the nearest one, of a passage that it names if possible."""
        single = self._evidence.units_of(ref for ref in claim.statement.named if ref.unit)
        if single or (claim.statement.leads and not claim.named):
            return single
        return _nearest(claim.statement.text, self._evidence.all_units(), NEAREST_SHARE, claim.named)


@dataclass(slots=True)
class _Claim:
    statement: Statement
    named: Sequence[IssuedUnit]
    shown: Sequence[IssuedUnit]  # to the judge
    context: str
    proof: "asyncio.Future[Proven | None]" = field(repr=False)


@lru_cache(maxsize=256)
def speaks_of_absence(text: str) -> bool:
    """Whether a statement seems to say that the book or the passages do not say something."""
    return _ABSENCE.search(text) is not None


def _share(text: str, unit: IssuedUnit) -> float:
    """The share of a text's content stems that a unit has."""
    wanted = stems(text)
    return len(wanted & stems(f"{unit.head} {unit.told}")) / len(wanted) if wanted else 0.0


def _nearest(
    text: str, units: Sequence[IssuedUnit], least: float, named: Sequence[IssuedUnit] = ()
) -> list[IssuedUnit]:
    """The unit that has most of a text's words, a named one with fewer, if it has enough of them."""
    shares = [_share(text, unit) + 0.2 * (unit in named) for unit in units]
    best = max(range(len(units)), key=lambda at: shares[at], default=-1)
    return [units[best]] if units and shares[best] >= least else []


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _by_words(units: Sequence[IssuedUnit]) -> dict[str, IssuedUnit]:
    """The units that can be understood alone by their words, as they stand and as they are told; the first counts."""
    own = [unit for unit in reversed(units) if unit.kind == "row" or not unit.head]
    return {_words(text): unit for unit in own for text in {without_mark(unit.text), unit.told}}


def _as_sentence(unit: IssuedUnit) -> str:
    """A unit's words on one line, with the line that introduces them."""
    said = " ".join((without_mark(unit.text) if unit.kind != "row" else unit.told).split())
    if unit.kind == "row" or not unit.head:
        return said
    return f"{' '.join(without_mark(unit.head).split())} {said}"
