"""Finds gaps of the book: groups of questions that were refused, answered with low confidence or rated down.

Grouping needs no language model. Two questions belong together if they are nearer to each other than to the book: see
`docs/decisions/0035-groups-of-gaps.md`. With a model, the groups get names. A single refusal may be a mistake; refusals
of several different questions about one subject rarely are: see `docs/decisions/0051-sure-gaps.md`.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from chapterverse.answering.confidence import ReaderSigns, fitted, level_of, probability
from chapterverse.answering.reading import CANDIDATES, read_book
from chapterverse.answering.refusals import nearest_sections
from chapterverse.conversations.topic import shorten
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.errors import InvalidFilterError
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.index import Index
from chapterverse.language import content_words
from chapterverse.models import Frozen, Reason, RetrievalRequest, RetrievedPassage, SearchFilters
from chapterverse.retrieval import editions_in
from chapterverse.services import Engines
from chapterverse.trained import shared_reader
from chapterverse.writing import Writer, prompts

Trouble = Literal["refused", "low", "rated_down"]
TROUBLE_LABELS: Final[dict[Trouble, str]] = {"refused": "refused", "low": "low confidence", "rated_down": "rated down"}
Namer = Callable[[Sequence[str]], Awaitable[str]]  # questions → the name of their subject, empty if there is none

MOST_QUESTIONS: Final = 1000  # distinct questions that are read again or grouped, newest first; each costs a search
EVEN: Final = 0.5  # if the probability of an answer is lower, the book more likely has none
SEVERAL: Final = 2  # a gap is sure if its refused questions are nearest to this many different sections
NEAREST: Final = 3  # sections that are listed for a group
NAMED: Final = 20  # groups that a model names, the largest first
NAMED_QUESTIONS: Final = 10  # questions of a group that the model is given
LONGEST_NAME: Final = 100  # characters; a longer reply is not a name
NAME_CHARS: Final = 120
_SHOWN_WORDS: Final = 8  # words that the book does not contain


class GapQuestion(Frozen):
    """A question that the book did not answer well."""

    question: str
    trouble: Trouble
    times: int
    last_asked: datetime
    turn_ids: list[str]
    reasons: list[Reason]
    comments: list[str]


class Gap(Frozen):
    """Questions about one subject, the most typical first."""

    name: str
    sure: bool  # whether the book very likely lacks it; otherwise the search or the section reader may be wrong
    asked: int
    sessions: int
    troubles: dict[Trouble, int]  # how many of the questions ended this way
    questions: list[GapQuestion]
    nearest: list[RetrievedPassage]
    missing_words: list[str]
    issue: str

    @property
    def counts(self) -> str:
        """The numbers of `troubles` in words."""
        return ", ".join(f"{count} {TROUBLE_LABELS[trouble]}" for trouble, count in self.troubles.items())


@dataclass(slots=True)
class Troubled:
    """A question that was not answered well, with all turns that asked it, oldest first, and the nearest sections of
    the current book."""

    text: str
    filters: SearchFilters | None = None  # the editions that it was asked of
    turns: list[AskedQuestion] = field(default_factory=list)
    chance: float = 0.0  # that the book answers it, by the section reader
    near: float = 0.0  # cosine of the nearest passage
    nearest: tuple[RetrievedPassage, ...] = ()

    @property
    def trouble(self) -> Trouble | None:
        """The current problem; None if there is none. A later good answer cancels a refusal, and a later thumbs up
        cancels a thumbs down."""
        ratings = [turn.rating for turn in self.turns if turn.rating]
        return "rated_down" if ratings and ratings[-1] == "down" else self.trouble_of(self.turns[-1])

    @property
    def lacking(self) -> bool:
        """Whether it was refused and the current book more likely does not answer it."""
        return self.trouble == "refused" and self.chance < EVEN

    def trouble_of(self, turn: AskedQuestion) -> Trouble | None:
        """Return the reason why a turn needs the author's attention; None if it does not.

        The confidence of an answer in the book's own words is raised to the minimum of the medium band, so it is
        never low. For the author, such an answer counts as low if the book more likely does not answer the question.
        """
        doubtful = self.chance < EVEN and _was_raised(turn) and turn.rating != "up"
        return trouble_of(turn) or ("low" if doubtful else None)


def trouble_of(turn: AskedQuestion) -> Trouble | None:
    """Return the reason why a stored turn needs the author's attention; None if it does not. Turns about a selection
    do not: it is the reader's own text, so they say nothing about the book."""
    if turn.mode != "general":
        return None
    if turn.rating == "down":
        return "rated_down"
    if turn.status == "refused":
        return "refused"
    low = turn.confidence is not None and level_of(turn.confidence) == "low"
    return "low" if low and turn.rating != "up" else None


def _was_raised(turn: AskedQuestion) -> bool:
    """Whether the confidence of an answer was raised to the minimum of the medium band."""
    if turn.mode != "general" or turn.status == "refused" or turn.confidence is None:
        return False
    return level_of(turn.confidence) != "low" and level_of(math.nextafter(turn.confidence, 0.0)) == "low"


async def find_troubled(asked: Sequence[AskedQuestion], engines: Engines) -> list[Troubled]:
    """Return the questions that were not answered well, after searching the current book for each again."""
    unsure = [one for one in _distinct(asked) if one.trouble or _was_raised(one.turns[-1])][-MOST_QUESTIONS:]
    for one in unsure:
        one.filters = await _still_there(one.filters, engines.index)
        request = RetrievalRequest(query=one.text, filters=one.filters, top_k=CANDIDATES)
        scope = await read_book(request, (), engines, shared_reader())
        one.chance = probability(fitted()["answerable"], ReaderSigns.of(scope, one.text))
        one.near = max((chunk.similarity_score for chunk in scope.found.results), default=0.0)
        one.nearest = tuple(nearest_sections(one.text, scope.found, scope.readings, least=0.0))
    return [one for one in unsure if one.trouble]


def namer_of(writer: Writer) -> Namer:
    """Return a function that asks a language model for the name of a group. If that fails or the reply is too long, the
    group has no name."""

    async def name(questions: Sequence[str]) -> str:
        listed = "\n".join(f"- {' '.join(question.split())}" for question in questions[:NAMED_QUESTIONS])
        said = await writer.ask(prompts.SUBJECT, listed)
        return said if len(said) <= LONGEST_NAME else ""

    return name


async def find_gaps(troubled: Sequence[Troubled], engines: Engines, namer: Namer | None = None) -> list[Gap]:
    """Group the questions. Sure gaps come first, the most asked first. The others follow, the least likely to be
    answered first."""
    if not troubled:
        return []
    vectors = np.stack([await engines.embedder.embed_query(one.text) for one in troubled])
    alike = vectors @ vectors.T
    groups = grouped(alike, [one.near for one in troubled])
    asked = np.array([len(one.turns) for one in troubled])
    ordered = [[troubled[number] for number in typical_first(group, alike, asked)] for group in groups]
    ordered.sort(key=_rank)
    return [await _gap(group, engines, namer if place < NAMED else None) for place, group in enumerate(ordered)]


def grouped(alike: NDArray[np.float32], near: Sequence[float]) -> list[list[int]]:
    """Group questions by average linkage: two groups are merged while their questions are, on average, nearer to
    each other than to the book. `alike` has the cosines between questions, `near` the cosine of each with its
    nearest passage."""
    bar = np.asarray(near, np.float64)
    gain = alike.astype(np.float64) - (bar[:, None] + bar[None, :]) / 2
    np.fill_diagonal(gain, -np.inf)
    groups: dict[int, list[int]] = {number: [number] for number in range(len(bar))}
    while len(groups) > 1:
        first, second = divmod(int(np.argmax(gain)), len(bar))
        if gain[first, second] <= 0:
            break
        size, other = len(groups[first]), len(groups[second])
        mean = (gain[first] * size + gain[second] * other) / (size + other)
        gain[first], gain[:, first] = mean, mean
        gain[first, first] = -np.inf
        gain[second], gain[:, second] = -np.inf, -np.inf
        groups[first] += groups.pop(second)
    return list(groups.values())


def _distinct(asked: Iterable[AskedQuestion]) -> list[Troubled]:
    """Merge repetitions of a question to the same editions, ignoring case, blanks and final punctuation. The order is
    that in which the questions were last asked."""
    known: dict[str, Troubled] = {}
    for turn in asked:
        if turn.mode == "general":
            text = " ".join((turn.standalone_query or turn.query).split())[:MAX_QUERY_CHARS]
            named = SearchFilters.of_editions(turn.filters)
            key = f"{text.casefold().rstrip(' ?!.…')} {named}"
            one = known.pop(key, None) or Troubled(text, named)
            one.turns.append(turn)
            known[key] = one
    return list(known.values())


async def _still_there(filters: SearchFilters | None, index: Index) -> SearchFilters | None:
    """Return the filters of a question, or None, which means the latest editions, if its editions no longer exist."""
    try:
        await editions_in(filters, index)
    except InvalidFilterError:
        return None
    return filters


def _is_sure(group: Sequence[Troubled]) -> bool:
    """Whether a reader rated an answer down, or several questions of the group were refused and are nearest to
    different sections. If one section is nearest to all, it likely covers the subject, and the refusals are a
    mistake."""
    sections = {one.nearest[0].source_url if one.nearest else one.text for one in group if one.lacking}
    return len(sections) >= SEVERAL or any(one.trouble == "rated_down" for one in group)


def _rank(group: Sequence[Troubled]) -> tuple[bool, float, float, float]:
    """Return the sort key of a group."""
    sure, asked = _is_sure(group), sum(len(one.turns) for one in group)
    chance = 0.0 if sure else min(one.chance for one in group)
    return not sure, chance, -asked, -max(one.turns[-1].created_at.timestamp() for one in group)


def typical_first(group: Sequence[int], alike: NDArray[np.float32], asked: NDArray[np.int64]) -> list[int]:
    """Sort the questions of a group by their similarity to all questions of the group, weighted by how often each was
    asked."""
    return sorted(group, key=lambda number: (-float(alike[number, group] @ asked[group]), number))


async def _gap(group: Sequence[Troubled], engines: Engines, namer: Namer | None) -> Gap:
    turns = [turn for one in group for turn in one.turns]
    words = {word.casefold(): word for one in group for word in content_words(one.text)}
    scope = [edition.key for one in group for edition in await editions_in(one.filters, engines.index)]
    missing = await engines.index.missing(list(words.values()), list(dict.fromkeys(scope)))
    name = await namer([one.text for one in group]) if namer else ""
    gap = Gap(
        name=shorten(name or group[0].text, NAME_CHARS),
        sure=_is_sure(group),
        asked=len(turns),
        sessions=len({turn.session_id for turn in turns}),
        troubles=dict(Counter(trouble for one in group for turn in one.turns if (trouble := one.trouble_of(turn)))),
        questions=[_question(one) for one in group],
        nearest=_nearest(group),
        missing_words=missing[:_SHOWN_WORDS],
        issue="",
    )
    return gap.model_copy(update={"issue": draft_issue(gap)})


def _question(one: Troubled) -> GapQuestion:
    trouble = one.trouble
    assert trouble is not None, "only such questions are grouped"
    return GapQuestion(
        question=one.text,
        trouble=trouble,
        times=len(one.turns),
        last_asked=one.turns[-1].created_at,
        turn_ids=[turn.turn_id for turn in one.turns],
        reasons=[turn.reason for turn in one.turns if turn.reason],
        comments=[turn.comment for turn in one.turns if turn.comment],
    )


def _nearest(group: Sequence[Troubled]) -> list[RetrievedPassage]:
    """Return the sections nearest to the group: those near to most questions first, then those with the best score."""
    best: dict[str, RetrievedPassage] = {}
    counts: Counter[str] = Counter()
    for one in group:
        for section in one.nearest:
            counts[section.source_url] += 1
            known = best.get(section.source_url)
            best[section.source_url] = section if known is None or section.score > known.score else known
    order = sorted(best.values(), key=lambda section: (-counts[section.source_url], -section.score))
    return order[:NEAREST]


def draft_issue(gap: Gap) -> str:
    """Return a draft of an issue about the gap, in Markdown."""
    lines = [
        f"# Documentation: {gap.name}",
        "",
        f"Readers asked this {_times(gap.asked)} in {_times(gap.sessions, 'session')}:",
        "",
    ]
    lines += [f"- {question.question}{_why(question)}" for question in gap.questions]
    lines += ["", "Nearest sections:", ""]
    lines += [f"- {section.place} ({section.source_url})" for section in gap.nearest] or ["- none"]
    if gap.missing_words:
        lines += ["", f"Words that the book does not have: {', '.join(gap.missing_words)}"]
    return "\n".join([*lines, ""])


def _why(question: GapQuestion) -> str:
    label = TROUBLE_LABELS[question.trouble]
    reasons = "".join(f", {reason.replace('_', ' ')}" for reason in dict.fromkeys(question.reasons))
    comments = "".join(f" “{' '.join(comment.split())}”" for comment in question.comments)
    return f" ({label}{reasons}){comments}"


def _times(number: int, noun: str = "time") -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
