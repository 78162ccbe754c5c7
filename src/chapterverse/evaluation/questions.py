"""Question sets: files with one JSON object on each line, and sets made from rated answers."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from chapterverse.conversations.turns import Turn
from chapterverse.errors import ValidationFailed
from chapterverse.fields import MAX_QUERY_CHARS, Query, Selection, faults_in, listed
from chapterverse.models import SearchFilters, Strict

SHOWN_FAULTS = 10  # the rest is counted


def _not_blank(text: str) -> str:
    if not text:
        raise ValueError("is empty; leave the field out instead")
    return text


def _several(value: object) -> object:
    if isinstance(value, str):
        return (_not_blank(value.strip()),)
    return () if value is None else value


def _as_written(texts: tuple[str, ...]) -> str | tuple[str, ...]:
    return texts[0] if len(texts) == 1 else texts


Given = Annotated[str, AfterValidator(_not_blank)]
# One text or a list of alternatives.
Known = Annotated[tuple[Given, ...], BeforeValidator(_several), PlainSerializer(_as_written)]


class Question(Strict):
    """A question and what is known about its answer. Only `question` is required; the other fields add measures."""

    id: Given = ""
    question: Query
    answerable: bool = Field(True, strict=True, description="False: the right answer is a refusal.")
    answer: Known = Field((), description="A short right answer.")
    page: Known = Field((), description="Address, path or title of the page that answers.")
    section: Given | None = Field(None, description="The heading above the evidence.")
    sentence: Known = Field((), description="The evidence, word for word: a sentence, or a stretch of several.")
    history: tuple[tuple[str, str], ...] = Field((), description="Earlier turns: [[question, answer], …].")
    rewrite: Query | None = Field(None, description="A follow-up as a person would put it without what came before.")
    selection: Selection | None = Field(None, description="Asked about this text alone.")
    filters: SearchFilters | None = None
    group: str = Field("", description="Document or conversation; questions of one are not independent.")
    kind: str = Field("", description="A sort of question, counted apart.")
    why: str = Field("", description="A note of the author.")
    check: str = Field("", description="What the author of the book should look at in a draft; to be deleted.")

    @property
    def context(self) -> str:
        """A digest of what is asked beside the question; empty if it is asked alone."""
        beside = self.model_dump_json(include={"history", "selection", "filters"}, exclude_defaults=True)
        return "" if beside == "{}" else hashlib.sha256(beside.encode()).hexdigest()[:16]

    @model_validator(mode="after")
    def _consistent(self) -> "Question":
        given = [name for name in ("answer", "page", "section", "sentence") if getattr(self, name)]
        if not self.answerable and given:
            raise ValueError(f"answerable is false, but {' and '.join(given)} is given; remove one of them")
        if self.selection is not None and not self.selection.strip():
            raise ValueError("selection is empty; leave the field out instead")
        if self.section and not (self.page or self.selection):
            raise ValueError("section needs the page that it is on")
        if self.rewrite and not self.history:
            raise ValueError("rewrite is for a question with a history")
        return self


def load_questions(path: Path) -> list[Question]:
    """Read the questions of a file. Raise `ValidationFailed` with a list of the invalid lines. The default id of a
    question is `line-N`."""
    try:
        content = path.read_text("utf-8-sig")
    except OSError as failure:
        raise ValidationFailed(f"{path} cannot be read: {failure.strerror}") from None
    except UnicodeDecodeError:
        raise ValidationFailed(f"{path} is not UTF-8 text.") from None
    questions: list[Question] = []
    faults: list[str] = []
    lines: dict[str, int] = {}  # line number of each id
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            question = _read(line, number)
        except ValueError as failure:
            faults.append(f"line {number}: {failure}")
            continue
        if question.id in lines:
            faults.append(f"line {number}: id: {question.id} is that of line {lines[question.id]} already")
        lines.setdefault(question.id, number)
        questions.append(question)
    if faults:
        raise ValidationFailed(_fault_message(path, faults))
    if not questions:
        raise ValidationFailed(f"{path} has no questions. Draft some with: chapterverse eval --make 20 > {path}")
    return questions


def set_digest(questions: Sequence[Question]) -> str:
    """Return a digest of the set, which does not depend on its file name."""
    return hashlib.sha256("\n".join(question.model_dump_json() for question in questions).encode()).hexdigest()[:16]


class Asked(Protocol):
    """A question of a set, or its record in an earlier run."""

    @property
    def id(self) -> str:
        """Its name in reports."""

    @property
    def question(self) -> str:
        """Its wording."""

    @property
    def context(self) -> str | None:
        """As `Question.context`."""


def earlier_ids(questions: Iterable[Asked], before: Iterable[Asked]) -> dict[str, str]:
    """Return the earlier id of each question that was asked before, in the same context. An id without an author is
    the number of a line, so it only distinguishes equal questions."""
    known: dict[tuple[str, str | None], list[str]] = {}
    for one in before:
        known.setdefault((one.question, one.context), []).append(one.id)
    found = {}
    for one in questions:
        # Records of before have no context.
        if ids := known.get((one.question, one.context)) or known.get((one.question, None)):
            found[one.id] = one.id if one.id in ids else ids[0]
    return found


def _read(line: str, number: int) -> Question:
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as failure:
        raise ValueError(f"invalid JSON at column {failure.colno}: {failure.msg}") from None
    except RecursionError:
        raise ValueError("invalid JSON: nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("each line must be a JSON object: {…}")
    try:
        return Question.model_validate({"id": f"line-{number}"} | fields)
    except ValidationError as failure:
        raise ValueError(listed(faults_in(failure))) from None


def _fault_message(path: Path, faults: Sequence[str]) -> str:
    more = f"\n… and {len(faults) - SHOWN_FAULTS} more" if len(faults) > SHOWN_FAULTS else ""
    return "\n".join([f"{path} cannot be used:", *faults[:SHOWN_FAULTS]]) + more


def rated_questions(turns: Iterable[Turn]) -> list[Question]:
    """Turn rated answers into questions of a set, each with its last rating in its edition, in the order of the turns.

    After a thumbs up, the evidence that was shown becomes the expected evidence. After a thumbs down, the question gets
    a note that asks the author for the right answer.
    """
    last: dict[tuple[str, str | None, str], Turn] = {}
    for turn in turns:
        if turn.feedback:
            selection = turn.selected_text if turn.mode == "selected_text" else None
            key = (_asked(turn).casefold(), selection, str(_editions(turn)))
            last.pop(key, None)
            last[key] = turn
    return [_question(turn, number) for number, turn in enumerate(last.values(), 1)]


def _asked(turn: Turn) -> str:
    """Return the question in a form that does not need its conversation, which is not part of the set."""
    return (turn.standalone_query or turn.query)[:MAX_QUERY_CHARS].strip()


def _editions(turn: Turn) -> SearchFilters | None:
    return SearchFilters.of_editions(next((search.filters for search in turn.searches), None))


def _question(turn: Turn, number: int) -> Question:
    assert turn.feedback is not None
    selection = turn.selected_text if turn.mode == "selected_text" else None
    asked = Question(
        id=f"rated{number:03}",
        question=_asked(turn),
        selection=selection,
        kind=turn.feedback.rating,
        filters=_editions(turn),
    )
    if turn.feedback.rating == "down":
        return asked.model_copy(update={"why": _why(turn), "check": _check(turn)})
    if turn.status == "refused":
        return asked.model_copy(update={"answerable": False, "why": "Its reader found the refusal right."})
    pages = tuple(dict.fromkeys(source["source_url"].partition("#")[0] for source in turn.sources))
    sentences = tuple(dict.fromkeys(source["quote"] for source in turn.sources if source["quote"].strip()))
    return asked.model_copy(update={"page": () if selection else pages, "sentence": sentences})


def _why(turn: Turn) -> str:
    assert turn.feedback is not None
    parts = [turn.feedback.reason or "", turn.feedback.comment]
    return ": ".join(["Rated down", *(part for part in parts if part)])


def _check(turn: Turn) -> str:
    ended = "It was refused" if turn.status == "refused" else f"It was answered: {_cited(turn.sources)}"
    return f"{ended}. Write down what the right answer shows, or that there is none; then delete this field."


def _cited(sources: Sequence[dict[str, object]]) -> str:
    return ", ".join(dict.fromkeys(str(source["source_url"]) for source in sources)) or "without a source"
