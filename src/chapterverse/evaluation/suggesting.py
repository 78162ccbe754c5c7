"""Makes suggested questions from the book's headings and definitions, and from questions that several readers asked.

Each question is asked before it is offered, and must be answered from the section it was made from. To turn headings
into questions, the module learns from the book which words it uses as verbs and which it capitalises.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Final

from chapterverse.answering import fold, prepare, stream
from chapterverse.book import Edition, Page, Section
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.errors import ConversationsUnavailable
from chapterverse.evaluation.drafting import POINTS_BACK, definitions
from chapterverse.ingestion.chunking import VERSION, kind_of
from chapterverse.language import INLINE_CODE, stem, stems
from chapterverse.models import ChatRequest, Frozen, SearchFilters
from chapterverse.services import Services

MOST_PAGES: Final = 300  # pages whose sections are considered, spread over the book
TRIES: Final = 5  # maximum number of questions that are tried for each one that is wanted
SESSIONS: Final = 3  # sessions that must have asked a question before other readers see it, for privacy
SINCE: Final = timedelta(days=90)
WAIT_SECONDS: Final = 0.5  # between two checks whether the server is still busy
LONGEST: Final = 9  # maximum number of words of a heading
LEAST_SEEN: Final = 2  # how often the book must use a word as a verb before it counts as one

_PROSE: Final = frozenset(("paragraph", "list", "field", "quote", "admonition"))
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NAMED: Final = re.compile(r"(?<=[a-z,] )[A-Z][\w-]*")
_DETERMINER: Final = r"(?:an?|the|your|our|this|these|its?|all|each|any)"
# A verb with its object in English: "to install the", "you can create a".
_BEFORE_VERB: Final = frozenset(("to", "can", "you", "we", "must", "should", "will", "not", "and", "or"))
_VERB: Final = re.compile(rf"\b(?i:to|can|you|we|must|should|will|not) ([a-z]+) {_DETERMINER}\b")
# The beginning of a noun phrase: "the build process".
_NOUN: Final = re.compile(rf"\b{_DETERMINER} ([^\W\d_]+) ([^\W\d_]+)")
_HEADING: Final = re.compile(r"[\w`'’.+#/ -]+\??")
_NUMBERING: Final = re.compile(r"^(?:\d+(?:\.\d+)*[.):]?|[A-Z]\.)\s+")
_ASKING: Final = r"(?:what|why|when|where|which|who|how)"
_ASKS: Final = re.compile(
    rf"{_ASKING} (?:is|are|was|do|does|did|can|could|should|would|will|has|have)\b", re.IGNORECASE
)
_HOW_TO: Final = re.compile(rf"({_ASKING}) to (?=\w)", re.IGNORECASE)
_ASKED: Final = re.compile(rf"{_ASKING}\b", re.IGNORECASE)
_ALSO: Final = re.compile(r"^(and|or) (\w+ing)\b")
_NO_OBJECT: Final = ("of ", "not ")  # the word before these is not used as a verb: "Use of JSON"
_READER: Final = {"i": "I", "you": "I", "your": "my", "our": "my", "yours": "mine", "yourself": "myself"}


class Suggestion(Frozen):
    """A question that the book answers, and the address of the page that does."""

    question: str
    page: str
    book: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question to try. It must be answered from its section, or from anywhere in the book if readers asked it."""

    question: str
    page_id: str = ""
    section: str = ""


async def make_suggestions(
    services: Services, wanted: int, busy: Callable[[], bool] = lambda: False
) -> list[Suggestion]:
    """Return the wanted number of questions for each edition, or fewer if it has fewer. Each is answered by its
    edition. No question is tried while the server is busy."""
    asked = await _asked_before(services)
    shelf = (await services.index.manifest()).shelf
    made = [await _of_edition(edition, services, wanted, busy, asked) for edition in shelf]
    return [one for suggestions in made for one in suggestions]


async def _of_edition(
    edition: Edition, services: Services, wanted: int, busy: Callable[[], bool], asked: Sequence[AskedQuestion]
) -> list[Suggestion]:
    found: dict[frozenset[str], Suggestion] = {}
    known = popular(one for one in asked if not one.editions or edition.key in one.editions)
    await _until_idle(busy)
    candidates = (*known[: wanted // 2], *(await _of_book(services, edition)))
    for candidate in candidates[: wanted * TRIES]:
        if len(found) == wanted:
            break
        await _until_idle(busy)
        about = stems(candidate.question)
        if about not in found and (page := await _tried(candidate, edition, services)):
            found[about] = Suggestion(
                question=candidate.question, page=page, book=edition.book, version=edition.version
            )
    return list(found.values())


async def _until_idle(busy: Callable[[], bool]) -> None:
    while busy():  # noqa: ASYNC110 - a background task
        await asyncio.sleep(WAIT_SECONDS)


async def _tried(candidate: Candidate, edition: Edition, services: Services) -> str:
    """Return the address of the page that answers; empty if the answer is not good enough to offer the question."""
    within = SearchFilters(book=[edition.book], version=[edition.version])
    request = ChatRequest(query=candidate.question, filters=within)
    prepared = await prepare(request, services, turns=())
    async with aclosing(stream(prepared, services)) as events:
        answer = await fold(events)
    if answer.status != "answered" or answer.confidence_level == "low":
        return ""
    for source in answer.sources:
        own = source.page_id == candidate.page_id and source.section_heading == candidate.section
        if own or not candidate.page_id:
            return source.source_url.partition("#")[0]
    return ""


# ── what readers asked ───────────────────────────────────────────────────────────────────────────────────────────────


async def _asked_before(services: Services) -> list[AskedQuestion]:
    now = datetime.now(UTC)
    try:
        return list(await services.conversations.asked(now - SINCE, now))
    except ConversationsUnavailable:
        return []


def popular(asked: Iterable[AskedQuestion]) -> list[Candidate]:
    """Return the questions that readers asked in the same words in several sessions, the most asked first. Questions
    that were once refused, rated down, or asked as a follow-up or about a selection are left out."""
    sessions: dict[str, set[str]] = {}
    texts: dict[str, str] = {}
    bad: set[str] = set()
    for one in asked:
        alone = one.standalone_query in (None, one.query)
        text = " ".join(one.query.split())
        key = text.casefold().rstrip(" ?!.…")
        if one.rating == "down" or one.status != "answered" or one.mode != "general" or not alone:
            bad.add(key)
        sessions.setdefault(key, set()).add(one.session_id)
        texts[key] = text
    several = [key for key, known in sessions.items() if len(known) >= SESSIONS and key not in bad]
    return [Candidate(texts[key]) for key in sorted(several, key=lambda key: -len(sessions[key]))]


# ── what the book offers ─────────────────────────────────────────────────────────────────────────────────────────────


async def _of_book(services: Services, edition: Edition) -> list[Candidate]:
    listed = [page for page in await services.index.pages() if page.edition == edition.key]
    step = max(1, -(-len(listed) // MOST_PAGES))
    read = [await services.index.page(page.page_id) for page in listed[::step]]
    return await asyncio.to_thread(lambda: book_candidates(explaining(read)))  # it takes seconds for a large book


def explaining(pages: Iterable[Page | None]) -> list[Page]:
    """Return the pages that explain something, without flagged pages and pages that list changes or links."""
    return [page for page in pages if page is not None and not page.flags and not kind_of(page)]


def book_candidates(pages: Sequence[Page]) -> list[Candidate]:
    """Return the questions made from the pages. Modules take turns, and within a module its pages take turns."""
    usage = WordUsage(pages)
    modules: dict[str, list[list[Candidate]]] = {}
    for page in pages:
        modules.setdefault(page.module, []).append(list(_of_page(page, usage)))
    in_turn = [_by_turns(offered) for offered in modules.values()]
    distinct: dict[str, Candidate] = {}
    for one in _by_turns(in_turn):
        distinct.setdefault(one.question.casefold(), one)
    return list(distinct.values())


def _by_turns(rows: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    return [one for row in zip_longest(*rows) for one in row if one is not None]


def _of_page(page: Page, usage: "WordUsage") -> Iterator[Candidate]:
    """Yield the questions that the sections of a page answer. Sections under the heading of a version are skipped,
    because they list its changes."""
    for section in page.sections:
        if any(map(VERSION.search, section.breadcrumb)):
            continue
        if question := _question(section, page, usage):
            yield Candidate(question, page.page_id, section.heading)


def _question(section: Section, page: Page, usage: "WordUsage") -> str:
    """Return the question that a section answers, as a person would ask it; empty if the section gives none."""
    heading = _NUMBERING.sub("", " ".join(section.heading.split()))
    if not _HEADING.fullmatch(heading) or len(heading.split()) > LONGEST:
        return ""
    asked = _asked_by(heading, usage) or _told_by(heading, usage)
    if asked:
        return asked if usage.is_telling(asked) and not POINTS_BACK.search(heading) else ""
    about = stems(heading)
    defined = definitions(page, section, usage.as_named)
    return next((asked for asked, term in defined if stems(term) and stems(term) <= about), "")


def _asked_by(heading: str, usage: "WordUsage") -> str:
    """Turn a heading that is a question, or nearly one, into a question: "How to install Helm". Else return an empty
    text."""
    first, _, rest = heading.rstrip("?. ").partition(" ")
    if found := _HOW_TO.match(heading):
        does = "do" if found[1].lower() == "how" else "should"
        return f"{found[1].capitalize()} {does} I {usage.as_asked(heading[found.end() :].rstrip('? '))}?"
    return f"{first} {usage.as_asked(rest)}?" if heading.endswith("?") or _ASKS.match(heading) else ""


def _told_by(heading: str, usage: "WordUsage") -> str:
    """Turn a heading that names an action into a question: "Install Helm" or "Installing Helm". Else return an empty
    text."""
    first, _, rest = heading.partition(" ")
    verb = "" if _ASKED.match(heading) else usage.verb(first)
    if not rest or not verb or rest.startswith(_NO_OBJECT) or usage.is_noun(first, rest.split()[0]):
        return ""
    if (also := _ALSO.match(rest)) and (second := usage.verb(also[2])):
        rest = f"{also[1]} {second}{rest[also.end() :]}"
    return f"How do I {verb} {usage.as_asked(rest)}?"


class WordUsage:
    """How a book uses its words."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._small: Counter[str] = Counter()  # words in lower case
        self._stems: Counter[str] = Counter()  # their stems
        self._named: Counter[str] = Counter()  # words with a capital inside a sentence
        self._verbs: Counter[str] = Counter()
        self._nouns: set[tuple[str, str]] = set()  # pairs of words that begin a noun phrase
        self._done: set[tuple[str, str]] = set()  # pairs of words whose first may be a verb
        self._said: set[tuple[str, str]] = set()  # all other pairs of words
        for page in pages:
            prose = _prose(page)
            small = [word for word in _WORD.findall(prose) if word.islower()]
            self._small.update(small)
            self._stems.update(map(stem, small))
            self._named.update(_NAMED.findall(prose))
            self._verbs.update(_VERB.findall(prose))
            self._nouns.update((first.lower(), stem(second)) for first, second in _NOUN.findall(prose))
            words = _WORD.findall(prose)
            for before, first, second in zip(words, words[1:], words[2:], strict=False):
                (self._done if before in _BEFORE_VERB else self._said).add((first, stem(second)))

    def is_noun(self, first: str, second: str) -> bool:
        """Whether two words begin a noun phrase, as in "the build process", or in "of test coverage" if the book never
        says "to test coverage". The second rule is not used for words in -ing, such as "Installing Helm"."""
        pair = first.lower(), stem(second)
        only_said = pair in self._said and pair not in self._done and not first.lower().endswith("ing")
        return pair in self._nouns or only_said

    def is_telling(self, question: str) -> bool:
        """Whether a question is specific enough: it has a capitalised word or at least two words that carry meaning."""
        named = [word for word in _WORD.findall(question)[1:] if word != "I" and not word.islower()]
        return bool(named) or len(stems(question)) > 1

    def verb(self, word: str) -> str:
        """Return the verb for the first word of a heading, such as "Install" or "Installing"; empty if it is none."""
        small = word.lower()
        if small.endswith("ing"):
            root = small[:-3]
            forms = [root, f"{root}e", root[:-1] if root[-1:] == root[-2:-1] else root]
        else:
            forms = [small]
        best = max(forms, key=lambda form: self._verbs[form])
        return best if self._verbs[best] >= LEAST_SEEN and best != "be" else ""

    def as_asked(self, text: str) -> str:
        """Convert words of a heading for use in a question: without the capitals of a title, and from the reader's
        point of view."""
        said = _WORD.sub(lambda found: self._inside(found[0]), text).rstrip(".")
        return re.sub(r"\w+", lambda found: _READER.get(found[0], found[0]), said)

    def as_named(self, text: str) -> str:
        """Convert the beginning of a sentence for use inside another. A word before a capitalised one is part of a name
        and keeps its capital."""
        first, blank, rest = text.partition(" ")
        return text if rest[:1].isupper() else f"{self._inside(first)}{blank}{rest}"

    def _inside(self, word: str) -> str:
        """Remove the capital of a word, if the book writes the word or another form of it without a capital more
        often."""
        small = word.lower()
        seen = self._small[small] or self._stems[stem(small)]
        return small if word[1:] == small[1:] and seen > self._named[word] else word


def _prose(page: Page) -> str:
    """Return the prose of a page, without code and link texts, because these use words and capitals differently."""
    letters = list(page.text)
    for mark in page.marks:
        if mark.kind in ("link", "code"):
            letters[mark.start : mark.end] = "·" * (mark.end - mark.start)
    text = "".join(letters)
    blocks = (text[block.start : block.end] for block in page.blocks if block.kind in _PROSE)
    return INLINE_CODE.sub(" ", "\n".join(blocks))
