"""Saves an answer as a file that can be verified later: its statements, their quotes, and hashes of the pages.

Verifying needs the book: each quote stands (unchanged, in the same place), has moved, has changed, or is gone.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from chapterverse.book import edition_key, text_hash
from chapterverse.embeddings import Embedder
from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.files import load_model
from chapterverse.evaluation.quotes import Quote, State, locate
from chapterverse.index import Index
from chapterverse.models import ChatResponse, Frozen, StatementKind, Status

FORMAT: Final = 1  # increase it when older proofs cannot be read


class ProvenPage(Frozen):
    """A quoted page, at the time of the answer."""

    page_id: str
    url: str
    title: str
    book: str = ""
    version: str = ""
    sha256: str = Field(description="Of the stored text, in UTF-8.")


class ProvenQuote(Frozen):
    """A quote: `page_text[start:end] == text`."""

    page_id: str
    source_url: str
    section_heading: str
    book: str = ""
    version: str = ""
    start: int = Field(ge=0)
    end: int
    text: str


class ProvenStatement(Frozen):
    """A part of the answer and the numbers of its quotes, from 1."""

    text: str
    kind: StatementKind
    quotes: list[int]


class Proof(Frozen):
    """An answer with its evidence."""

    format: Literal[1] = FORMAT
    question: str
    answer: str
    status: Status
    model: str
    answered_at: datetime
    book: str = Field(description="Name of the state of the book that answered.")
    statements: list[ProvenStatement]
    quotes: list[ProvenQuote]
    pages: list[ProvenPage]


class QuoteCheck(Frozen):
    """The state of a quote."""

    number: int
    state: State
    quote: ProvenQuote
    page_as_it_was: bool
    url: str = ""  # of the page where it is now, if anywhere
    start: int = 0
    end: int = 0
    now: str = ""  # the text there


async def make_proof(question: str, answer: ChatResponse, index: Index) -> Proof:
    """Make the proof of an answer from the book. Call it right after answering."""
    pages: dict[str, ProvenPage] = {}
    for source in answer.sources:
        page = await index.page(source.page_id)
        if page is None or page.text[source.quote_start : source.quote_end] != source.quote:
            raise ValidationFailed("The book changed while it was asked; ask again to get a proof.")
        pages[page.page_id] = ProvenPage(
            page_id=page.page_id,
            url=page.url,
            title=page.title,
            book=source.book,
            version=source.version,
            sha256=text_hash(page.text),
        )
    return Proof(
        question=question,
        answer=answer.answer,
        status=answer.status,
        model=answer.metadata.model,
        answered_at=answer.timestamp,
        book=(await index.manifest()).generation,
        statements=[
            ProvenStatement(
                text=answer.answer[statement.start : statement.end], kind=statement.kind, quotes=statement.sources
            )
            for statement in answer.statements
        ],
        quotes=[
            ProvenQuote(
                page_id=source.page_id,
                source_url=source.source_url,
                section_heading=source.section_heading,
                book=source.book,
                version=source.version,
                start=source.quote_start,
                end=source.quote_end,
                text=source.quote,
            )
            for source in answer.sources
        ],
        pages=list(pages.values()),
    )


async def verify_proof(proof: Proof, embedder: Embedder, index: Index) -> list[QuoteCheck]:
    """Return the current state of each quote, in order."""
    hashes = {page.page_id: page.sha256 for page in proof.pages}
    checks: list[QuoteCheck] = []
    for number, quote in enumerate(proof.quotes, start=1):
        edition = edition_key(quote.book, quote.version)
        found = await locate(Quote(quote.page_id, quote.start, quote.end, quote.text, edition), embedder, index)
        own = found.page if found.page and found.page.page_id == quote.page_id else await index.page(quote.page_id)
        checks.append(
            QuoteCheck(
                number=number,
                state=found.state,
                quote=quote,
                page_as_it_was=own is not None and text_hash(own.text) == hashes.get(quote.page_id),
                url=found.page.url if found.page else "",
                start=found.start,
                end=found.end,
                now=found.now,
            )
        )
    return checks


def unproven(proof: Proof, checks: Sequence[QuoteCheck]) -> list[ProvenStatement]:
    """Return the statements with a quote that has changed or is gone."""
    failed = {check.number for check in checks if check.state in ("changed", "gone")}
    return [statement for statement in proof.statements if failed & set(statement.quotes)]


def load_proof(path: Path) -> Proof:
    """Read a proof."""
    return load_model(Proof, path, f"a proof; make one with: chapterverse ask … --proof {path}")
