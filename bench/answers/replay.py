"""Replays recorded statements through the real gate and returns what was shown."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from chapterverse.answering.refusals import is_refusal
from chapterverse.evidence.citations import Proven, Renderer
from chapterverse.evidence.gate import Counts, Gate
from chapterverse.evidence.judge import Judge, JudgeUsage
from chapterverse.evidence.passages import Evidence
from chapterverse.evidence.statement import Statement


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a reader saw of an answer."""

    text: str
    proven: tuple[Proven, ...]
    drafts: tuple[Statement, ...]
    evidence: Evidence
    counts: Counts
    usage: JudgeUsage

    def shows(self, statement: Statement) -> bool:
        """Whether a statement was shown as it was written, apart from a connective or a colon."""
        said = _core(statement.text)
        if statement.shape == "code":
            return any(code_lines(one.statement.text) <= code_lines(statement.text) for one in self._code())
        return any(not one.replaced and _core(one.statement.text).endswith(said[-60:]) for one in self.proven if said)

    def _code(self) -> list[Proven]:
        return [one for one in self.proven if one.statement.shape == "code" and not one.replaced]


async def replay(
    drafts: Sequence[Statement], evidence: Evidence, judge: Judge | None, seconds: float = 30.0
) -> Replayed:
    """Prove statements as the product does."""
    gate = Gate(evidence, judge, deadline=asyncio.get_running_loop().time() + seconds, is_refusal=is_refusal)
    renderer = Renderer(evidence.passages)
    proven = [one async for one in gate.prove(_written(drafts))]
    text = "".join(renderer.write(one).content for one in proven)
    return Replayed(text, tuple(proven), tuple(drafts), evidence, gate.counts, gate.usage)


async def _written(drafts: Sequence[Statement]) -> AsyncGenerator[Statement | Proven, None]:
    for draft in drafts:
        await asyncio.sleep(0)
        yield draft


def code_lines(code: str) -> set[str]:
    """Return the lines of code without comments, because a writer may have added them."""
    bare = (re.sub(r"(?:^|\s)(?:#|//|--)\s.*", "", line) for line in code.splitlines())
    return {"".join(line.split()) for line in bare if line.strip()}


def _core(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .:")
