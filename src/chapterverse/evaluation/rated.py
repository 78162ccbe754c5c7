"""Answers that readers rated, as questions of a set.

A thumb up says that the evidence shown was the right one: it becomes what the answer must show. A thumb down says only
that something is wrong; the question is kept with a note for the author, who knows what the answer should be.
"""

from collections.abc import Iterable, Sequence

from chapterverse.conversations.turns import Turn
from chapterverse.evaluation.questions import Question
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.models import SearchFilters


def rated_questions(turns: Iterable[Turn]) -> list[Question]:
    """The questions, each as it was rated last, in the order of the turns."""
    last: dict[tuple[str, str | None], Turn] = {}
    for turn in turns:
        if turn.feedback:
            key = (_asked(turn).casefold(), turn.selected_text if turn.mode == "selected_text" else None)
            last.pop(key, None)
            last[key] = turn
    return [_question(turn, number) for number, turn in enumerate(last.values(), 1)]


def _asked(turn: Turn) -> str:
    """The question as it stands alone, because the conversation around it is not part of the set."""
    return (turn.standalone_query or turn.query)[:MAX_QUERY_CHARS].strip()


def _question(turn: Turn, number: int) -> Question:
    assert turn.feedback is not None
    selection = turn.selected_text if turn.mode == "selected_text" else None
    filters = SearchFilters.of_editions(next((search.filters for search in turn.searches), None))
    asked = Question(
        id=f"rated{number:03}",
        question=_asked(turn),
        selection=selection,
        kind=turn.feedback.rating,
        filters=filters,
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
    told = [turn.feedback.reason or "", turn.feedback.comment]
    return ": ".join(["Rated down", *(part for part in told if part)])


def _check(turn: Turn) -> str:
    ended = "It was refused" if turn.status == "refused" else f"It was answered: {_cited(turn.sources)}"
    return f"{ended}. Write down what the right answer shows, or that there is none; then delete this field."


def _cited(sources: Sequence[dict[str, object]]) -> str:
    return ", ".join(dict.fromkeys(str(source["source_url"]) for source in sources)) or "without a source"
