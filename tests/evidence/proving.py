"""Proves a model's text as the package does, and renders what is shown."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from chapterverse.answering.refusals import is_refusal
from chapterverse.evidence.citations import Proven, Renderer
from chapterverse.evidence.gate import Gate
from chapterverse.evidence.judge import Judge
from chapterverse.evidence.passages import Evidence
from chapterverse.evidence.statement import Statement
from chapterverse.models import SourceCitation
from chapterverse.writing.markdown import MarkdownParser


@dataclass(frozen=True)
class Outcome:
    """What is shown of a text, and why."""

    text: str
    proven: list[Proven]
    sources: list[SourceCitation]
    gate: Gate


def evidence_of(*texts: str, question: str = "") -> Evidence:
    evidence = Evidence(question)
    for text in texts:
        evidence.issue_text(text)
    return evidence


async def drafts_of(text: str, pause: float = 0.0) -> AsyncGenerator[Statement | Proven, None]:
    parser = MarkdownParser()
    for at in range(0, len(text), 16):
        await asyncio.sleep(pause)
        for statement in parser.feed(text[at : at + 16]):
            yield statement
    for statement in parser.finish():
        yield statement


async def prove(text: str, evidence: Evidence, judge: Judge | None, seconds: float = 10.0) -> Outcome:
    deadline = asyncio.get_running_loop().time() + seconds
    gate = Gate(evidence, judge, deadline=deadline, is_refusal=is_refusal)
    renderer = Renderer(evidence.passages)
    proven = [one async for one in gate.prove(drafts_of(text))]
    return Outcome("".join(renderer.write(one).content for one in proven), proven, renderer.sources, gate)
