"""What the book lacks: questions that were refused, answered in doubt or rated down, in groups.

Grouping needs no language model. Two questions belong together when they are nearer to each other than to the book:
see `docs/decisions/0035-groups-of-gaps.md`. With a model, the groups get names.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from chapterverse.answering.confidence import ReaderSigns, fitted, level_of, probability
from chapterverse.answering.reading import read_book
from chapterverse.answering.refusals import nearest_sections
from chapterverse.conversations.topic import shorten
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.errors import InvalidFilterError
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.index import Index
from chapterverse.language import content_words
from chapterverse.models import Frozen, Reason, RetrievalRequest, RetrievedPassage, SearchFilters
from chapterverse.retrieval import editions_in, retrieve_with_retry
from chapterverse.services import Engines
from chapterverse.trained import shared_reader
from chapterverse.writing import Writer, prompts

Trouble = Literal["refused", "low", "rated_down"]
Namer = Callable[[Sequence[str]], Awaitable[str]]  # questions → the name of their subject, empty if there is none

MOST_QUESTIONS: Final = 1000  # distinct ones that are read again or grouped, the last asked; each costs a search
EVEN: Final = 0.5  # chance that the book answers, below which it more likely does not
NEAREST: Final = 3  # sections that a group names
NAMED: Final = 20  # groups that a model names, the largest
NAMED_QUESTIONS: Final = 10  # of a group that a model names
LONGEST_NAME: Final = 100  # characters; a longer one is no name
NAME_CHARS: Final = 120
_SHOWN_WORDS: Final = 8  # that the book lacks


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
    asked: int
    sessions: int
    troubles: dict[Trouble, int]  # how many of the questions asked ended so
    questions: list[GapQuestion]
    nearest: list[RetrievedPassage]
    missing_words: list[str]
    issue: str


@dataclass(slots=True)
class _Asked:
    """A question with all the turns that asked it, oldest first."""

    text: str
    filters: SearchFilters | None = None  # the editions that it was asked of
    turns: list[AskedQuestion] = field(default_factory=list)
    nearest: tuple[RetrievedPassage, ...] = ()

    @property
    def trouble(self) -> Trouble | None:
        """What is wrong now: a later good answer ends a refusal, a later thumb up ends a thumb down."""
        ratings = [turn.rating for turn in self.turns if turn.rating]
        return "rated_down" if ratings and ratings[-1] == "down" else trouble_of(self.turns[-1])


def trouble_of(turn: AskedQuestion) -> Trouble | None:
    """Why a turn needs the author's attention. A selection is the reader's own text: its refusals say nothing of the
    book."""
    if turn.mode != "general":
        return None
    if turn.rating == "down":
        return "rated_down"
    if turn.status == "refused":
        return "refused"
    low = turn.confidence is not None and level_of(turn.confidence) == "low"
    return "low" if low and turn.rating != "up" else None


async def reconsidered(asked: Sequence[AskedQuestion], engines: Engines) -> list[AskedQuestion]:
    """The questions, those answered in doubt with the chance that the book answers them.

    An answer in the book's own words is never called low, however unsure it is: its confidence is raised to the least
    that is not low. The author is to know better. What was answered so is read again, in the book as it is now; if the
    book more likely does not answer it than does, that chance is the confidence."""
    chances: dict[str, float] = {}
    for one in _distinct(turn for turn in asked if _was_raised(turn))[-MOST_QUESTIONS:]:
        filters = await _still_there(one.filters, engines.index)
        request = RetrievalRequest(query=one.text, filters=filters)
        scope = await read_book(one.text, (), request, engines, shared_reader())
        chance = probability(fitted()["answerable"], ReaderSigns.of(scope, one.text))
        if chance < EVEN:
            chances |= dict.fromkeys((turn.turn_id for turn in one.turns), round(chance, 4))
    return [replace(turn, confidence=chances.get(turn.turn_id, turn.confidence)) for turn in asked]


def _was_raised(turn: AskedQuestion) -> bool:
    """Whether an answer has the least confidence that is not low."""
    if turn.mode != "general" or turn.status == "refused" or turn.confidence is None:
        return False
    return level_of(turn.confidence) != "low" and level_of(math.nextafter(turn.confidence, 0.0)) == "low"


def namer_of(writer: Writer) -> Namer:
    """Asks a language model once for each group; whatever goes wrong, the group has no name."""

    async def name(questions: Sequence[str]) -> str:
        listed = "\n".join(f"- {' '.join(question.split())}" for question in questions[:NAMED_QUESTIONS])
        said = await writer.ask(prompts.SUBJECT, listed)
        return said if len(said) <= LONGEST_NAME else ""

    return name


async def find_gaps(asked: Sequence[AskedQuestion], engines: Engines, namer: Namer | None = None) -> list[Gap]:
    """The gaps that questions show, the most asked first."""
    troubled = [one for one in _distinct(asked) if one.trouble][-MOST_QUESTIONS:]
    if not troubled:
        return []
    vectors, near = [], []
    for one in troubled:
        one.filters = await _still_there(one.filters, engines.index)
        request = RetrievalRequest(query=one.text, filters=one.filters)
        found = await retrieve_with_retry(request, engines.embedder, engines.index)
        one.nearest = tuple(nearest_sections(found, least=0.0))
        near.append(max((chunk.similarity_score for chunk in found.results), default=0.0))
        vectors.append(await engines.embedder.embed_query(one.text))
    alike = np.stack(vectors) @ np.stack(vectors).T
    groups = [[troubled[number] for number in _typical_first(group, alike)] for group in grouped(alike, near)]
    groups.sort(key=lambda group: (-sum(len(one.turns) for one in group), -group[0].turns[-1].created_at.timestamp()))
    return [await _gap(group, engines, namer if place < NAMED else None) for place, group in enumerate(groups)]


def grouped(alike: NDArray[np.float32], near: Sequence[float]) -> list[list[int]]:
    """Groups of questions, by average linkage: two groups become one while their questions are, on average, nearer to
    each other than to the book. `alike` has the cosines of questions, `near` of each its nearest passage's."""
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


def _distinct(asked: Iterable[AskedQuestion]) -> list[_Asked]:
    """Each question of an edition once, whatever its case, blanks and end, in the order in which they were last
    asked."""
    known: dict[str, _Asked] = {}
    for turn in asked:
        if turn.mode == "general":
            text = " ".join((turn.standalone_query or turn.query).split())[:MAX_QUERY_CHARS]
            named = SearchFilters.of_editions(turn.filters)
            key = f"{text.casefold().rstrip(' ?!.…')} {named}"
            one = known.pop(key, None) or _Asked(text, named)
            one.turns.append(turn)
            known[key] = one
    return list(known.values())


async def _still_there(filters: SearchFilters | None, index: Index) -> SearchFilters | None:
    """The editions that a question was asked of; the latest ones, if those are no longer there."""
    try:
        await editions_in(filters, index)
    except InvalidFilterError:
        return None
    return filters


def _typical_first(group: Sequence[int], alike: NDArray[np.float32]) -> list[int]:
    return sorted(group, key=lambda number: (-float(alike[number, group].sum()), number))


async def _gap(group: Sequence[_Asked], engines: Engines, namer: Namer | None) -> Gap:
    turns = [turn for one in group for turn in one.turns]
    words = {word.casefold(): word for one in group for word in content_words(one.text)}
    scope = [edition.key for one in group for edition in await editions_in(one.filters, engines.index)]
    missing = await engines.index.missing(list(words.values()), list(dict.fromkeys(scope)))
    name = await namer([one.text for one in group]) if namer else ""
    gap = Gap(
        name=shorten(name or group[0].text, NAME_CHARS),
        asked=len(turns),
        sessions=len({turn.session_id for turn in turns}),
        troubles=dict(Counter(trouble for turn in turns if (trouble := trouble_of(turn)))),
        questions=[_question(one) for one in group],
        nearest=_nearest(group),
        missing_words=missing[:_SHOWN_WORDS],
        issue="",
    )
    return gap.model_copy(update={"issue": draft_issue(gap)})


def _question(one: _Asked) -> GapQuestion:
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


def _nearest(group: Sequence[_Asked]) -> list[RetrievedPassage]:
    """The sections that come nearest to the group: those of most questions, then the best."""
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
    """The gap as the draft of an issue, in Markdown."""
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
    told = {"refused": "refused", "low": "low confidence", "rated_down": "rated down"}[question.trouble]
    reasons = "".join(f", {reason.replace('_', ' ')}" for reason in dict.fromkeys(question.reasons))
    comments = "".join(f" “{' '.join(comment.split())}”" for comment in question.comments)
    return f" ({told}{reasons}){comments}"


def _times(number: int, noun: str = "time") -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
