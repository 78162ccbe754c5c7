"""Drafts questions from the book, for its author to edit. The same book always gives the same drafts."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Final

from chapterverse.book import Page, Section
from chapterverse.evaluation.questions import Question
from chapterverse.language import sentences

UNANSWERABLE: Final = 4  # every fourth draft should be refused
LONGEST: Final = 800  # characters of a sentence or heading that gives a question, so that a question can name two

_TERM = r"(?P<article>An? |The )?(?P<term>(?!An? |The )[\w`'’./+-]+(?: [\w`'’./+-]+){0,3}?)"
_DEFINITION: Final = re.compile(rf"^{_TERM},? (?P<verb>is|are) (?P<rest>(?:an?|the|one of) .{{12,}})$")
_PURPOSE: Final = re.compile(rf"^{_TERM} (?P<verb>is|are) used (?P<rest>(?:to|for) .{{8,}})$")
_CALLED: Final = re.compile(
    r"^(?P<rest>.{20,}) (?P<verb>is|are) called (?P<article>an? |the )?(?P<term>[\w`'’-]+(?: [\w`'’-]+){0,2})[,.]"
)
_REASON: Final = re.compile(r"^(?P<clause>[A-Z][^,;:]{20,120}?),? because (?P<reason>.{10,})$")
POINTS_BACK: Final = re.compile(
    r"\b(?:it|its|this|that|these|those|they|them|their|he|she|here|there|such|former|latter)\b", re.IGNORECASE
)
_NO_TERM: Final = frozenset(
    ("what", "which", "there", "here", "result", "reason", "goal", "answer", "difference", "first")
)


@dataclass(frozen=True, slots=True)
class DraftedQuestion:
    """A question with its term, which can be used in another question."""

    question: Question
    term: str = ""  # "node"
    named: str = ""  # "a node"
    is_reason: bool = False  # asks for the reason of a statement, in which a term can be replaced


def draft_questions(pages: Sequence[Page], count: int) -> list[Question]:
    """Return at most `count` drafts, spread over the pages, with some unanswerable ones at the end."""
    by_page = [list(_drafts(page)) for page in pages]
    # One from each page in turn, the best first.
    found = [draft for row in zip_longest(*by_page) for draft in row if draft is not None]
    distinct = list({draft.question.question.lower(): draft for draft in reversed(found)}.values())[::-1]
    wanted = count // UNANSWERABLE
    swapped = list(islice(_swapped(distinct, pages), wanted))
    drafts = [draft.question for draft in distinct[: count - len(swapped)]]
    numbered = [draft.model_copy(update={"id": f"q{number:02}"}) for number, draft in enumerate(drafts, 1)]
    return numbered + [draft.model_copy(update={"id": f"u{number:02}"}) for number, draft in enumerate(swapped, 1)]


def definitions(page: Page, section: Section, inside: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield questions that a sentence of the section answers directly, each with its term. `inside` converts the
    beginning of a sentence to its spelling in the middle of one."""
    for sentence in _prose(page, section):
        draft = _from_sentence(page, section, sentence, inside)
        if draft is not None and draft.term:
            yield draft.question.question, draft.term


def to_line(question: Question) -> str:
    """Return a question as a line of a set, without empty fields."""
    empty = {name for name in Question.model_fields if getattr(question, name) in (None, "", ())}
    return question.model_dump_json(exclude=empty)


def _drafts(page: Page) -> Iterator[DraftedQuestion]:
    """Yield the drafts of a page: from sentences that define or explain something, then from headings."""
    headings: list[DraftedQuestion] = []
    for section in page.sections:
        spoken = list(_prose(page, section))
        for sentence in spoken:
            if draft := _from_sentence(page, section, sentence):
                yield draft
        if spoken and section.level > 1 and len(section.heading + page.title) <= LONGEST:
            headings.append(_from_heading(page, section, spoken[0]))
    yield from headings


def _prose(page: Page, section: Section) -> Iterator[str]:
    """Yield the sentences of a section's own paragraphs that can be understood alone."""
    number = page.sections.index(section)
    for block in page.blocks:
        if block.kind == "paragraph" and block.section == number:
            text = page.text[block.start : block.end]
            for start, end in sentences(text):
                sentence = " ".join(text[start:end].split())
                if 6 <= len(sentence.split()) <= 45 and len(sentence) <= LONGEST and not POINTS_BACK.match(sentence):
                    yield sentence


def _from_sentence(
    page: Page, section: Section, sentence: str, inside: Callable[[str], str] | None = None
) -> DraftedQuestion | None:
    inside = inside or (lambda text: _as_inside(text, page))
    asks = (
        (_DEFINITION, "What {verb} {named}?"),
        (_PURPOSE, "What {verb} {named} used for?"),
        (_CALLED, "What is meant by {named}?"),
    )
    for pattern, asked in asks:
        found = pattern.match(sentence)
        if found and _is_term(found["term"]):
            term = found["term"] if found["article"] else inside(found["term"])
            named = (found["article"] or "").lower() + term
            question = _question(page, section, sentence, asked.format(verb=found["verb"], named=named))
            answer = {"answer": (found["rest"].rstrip(". "),)}
            return DraftedQuestion(question.model_copy(update=answer), term.strip("`"), named)
    found = _REASON.match(sentence)
    if found and not POINTS_BACK.search(found["clause"]):
        asked = f"Why is it that {_as_inside(found['clause'], page)}?"
        answer = {"answer": (found["reason"].rstrip(". "),)}
        return DraftedQuestion(_question(page, section, sentence, asked).model_copy(update=answer), is_reason=True)
    return None


def _is_term(term: str) -> bool:
    words = term.lower().split()
    return not {words[0], words[-1]} & _NO_TERM and not POINTS_BACK.search(term)


def _as_inside(text: str, page: Page) -> str:
    """Write the beginning of a sentence as in the middle of one: in lower case, if the page uses the word that way."""
    first = text.split(maxsplit=1)[0]
    small = first[0].lower() + first[1:]
    return small + text[len(first) :] if re.search(rf"[a-z,] {re.escape(small)}(?!\w)", page.text) else text


def _from_heading(page: Page, section: Section, sentence: str) -> DraftedQuestion:
    heading = section.heading
    asked = heading if heading.endswith("?") else f"What does the book say about “{heading}” ({page.title})?"
    return DraftedQuestion(_question(page, section, sentence, asked))


def _question(page: Page, section: Section, sentence: str, asked: str) -> Question:
    where = section.heading or page.title or None
    return Question(id="draft", question=asked, page=(page.url,), section=where, sentence=(sentence,))


def _swapped(drafts: Sequence[DraftedQuestion], pages: Sequence[Page]) -> Iterator[Question]:
    """Yield unanswerable questions that combine terms of different pages: first questions for a reason with one term
    replaced, then questions about two terms."""
    terms = {draft.term: draft.named for draft in drafts if draft.term}
    texts = [page.text.lower() for page in pages]
    taken: set[str] = set()

    def stranger(term: str) -> str | None:
        for other in terms:
            if other not in taken and not any(term.lower() in text and other.lower() in text for text in texts):
                return other
        return None

    for draft in drafts:
        asked = draft.question.question
        if not draft.is_reason or "`" in asked:  # a term inside code cannot be replaced
            continue
        term = next((name for name in terms if re.search(rf"\b{re.escape(name)}\b", asked)), None)
        if term and (other := stranger(term)):
            taken.add(other)
            put_in = terms[other] if terms[term] == term else other  # a name has no article
            yield _unanswerable(asked.replace(term, put_in), f"“{asked}” with “{put_in}” in place of “{term}”.")
    for term, named in terms.items():
        if term not in taken and (other := stranger(term)):
            taken |= {term, other}
            asked = f"What does {named} have to do with {terms[other]}?"
            yield _unanswerable(asked, f"“{terms[other]}” put into a question about “{named}”.")


def _unanswerable(question: str, why: str) -> Question:
    check = "Made by a rule. Make sure that the book does not say; ask it as a reader would; then delete this field."
    return Question(id="draft", question=question, answerable=False, why=why, check=check)
