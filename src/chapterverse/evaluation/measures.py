"""Measures for single questions, and the comparison of shown evidence with the evidence that the set names.

Each measure is a function from a case to a number, or to None if it does not apply. A question that failed counts only
as a failure.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chapterverse.evaluation.cases import Case, Citation, FoundPassage
from chapterverse.evaluation.questions import Question
from chapterverse.language import sentences

DEPTH: Final = 5  # passages of an ordinary search
LEAST_OVERLAP: Final = 0.5  # share of a sentence's words, in sequence, that a quote must have
LEAST_WORDS: Final = 4  # minimum length of a part of a text in words; fewer words may occur anywhere

_MARKER: Final = re.compile(r"\[\d+\]")  # of a citation, in an answer
_WORD: Final = re.compile(r"\w+")
_DOCUMENT: Final = re.compile(r"\.(?:mdx?|markdown|rst|adoc|html?|txt|pdf|epub)$", re.IGNORECASE)
_LITTLE: Final = frozenset(("a", "an", "the"))  # words that are ignored in answers


@dataclass(frozen=True, slots=True)
class Measure:
    """A function that gives a number for each question, and the meaning of its average."""

    key: str
    group: str
    label: str
    kind: Literal["share", "mean", "ms", "count"]  # share: of 0 and 1; mean: of numbers from 0 to 1
    better: Literal["higher", "lower", ""]
    of: Callable[[Case], float | None]


# ── comparing places and words ───────────────────────────────────────────────────────────────────────────────────────


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation and markup."""
    return _WORD.findall(text.lower())


def contains(text: str, part: str) -> bool:
    """Whether `text` contains the words of `part` in sequence."""
    wanted = words_of(part)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words_of(text))} "


def same_page(page: str, url: str, title: str) -> bool:
    """Whether `page` names the page at `url`: by its address, the end of its path, or its title."""
    wanted, found = _segments(page), _segments(url)
    if wanted == ["index"]:  # the start page of the book, not of each of its folders
        home = found[-1:] == wanted and len(found) == 2 and "://" not in url  # after the name of the book's folder
        return words_of(page) == words_of(title) or home or not _folder(found)
    return words_of(page) == words_of(title) or _ends(found, wanted) or _ends(_folder(found), _folder(wanted))


def on_page(question: Question, item: FoundPassage | Citation) -> bool:
    """Whether a passage is from a page that the set names."""
    return any(same_page(page, item.source_url, item.page_title) for page in question.page)


def in_place(question: Question, item: FoundPassage | Citation) -> bool:
    """Whether a passage is from a page that the set names, and from the section, if the set names one."""
    if not on_page(question, item):
        return False
    return question.section is None or words_of(question.section) == words_of(item.section_heading)


def holds_evidence(evidence: str, quote: str) -> bool:
    """Whether a quote contains a sentence of the evidence, or at least half of one."""
    pieces = [evidence[start:end] for start, end in sentences(evidence)]
    long = [piece for piece in pieces if len(words_of(piece)) >= LEAST_WORDS] or [evidence]
    return any(_overlap(words_of(piece), words_of(quote)) >= LEAST_OVERLAP for piece in long)


def _overlap(wanted: Sequence[str], words: Sequence[str]) -> float:
    """Return the share of `wanted` that both have in common, because one contains the other, or because the end of one
    is the beginning of the other."""
    if not wanted or not words:
        return 0.0
    if contains(" ".join(words), " ".join(wanted)):
        return 1.0
    if contains(" ".join(wanted), " ".join(words)):
        return len(words) / len(wanted)
    longest = min(len(wanted), len(words))
    shared = (
        size
        for size in range(longest, 0, -1)
        if list(wanted[-size:]) == list(words[:size]) or list(words[-size:]) == list(wanted[:size])
    )
    return next(shared, 0) / len(wanted)


def is_evidence(question: Question, citation: Citation) -> bool | None:
    """Whether a quote is the evidence, by the most exact field that the set gives; None if it gives none."""
    if question.sentence:
        return any(holds_evidence(sentence, citation.quote) for sentence in question.sentence)
    if question.page:
        return in_place(question, citation)
    return any(contains(citation.quote, answer) for answer in question.answer) if question.answer else None


def token_f1(said: str, right: str) -> float:
    """Return the overlap of two texts in words: the harmonic mean of precision and recall, as in SQuAD."""
    ours = Counter(word for word in words_of(said) if word not in _LITTLE)
    theirs = Counter(word for word in words_of(right) if word not in _LITTLE)
    shared = (ours & theirs).total()
    return 2 * shared / (ours.total() + theirs.total()) if shared else 0.0


def _segments(address: str) -> list[str]:
    path = _DOCUMENT.sub("", re.sub(r"^\w+://[^/]*|[#?].*$", "", address).strip("/"))
    return path.split("/") if path else []


def _folder(segments: list[str]) -> list[str]:
    return segments[:-1] if segments[-1:] == ["index"] else segments


def _ends(found: list[str], wanted: list[str]) -> bool:
    """Whether a path ends with another one. The home page has no path, so that it is the end only of itself."""
    return found[-len(wanted) :] == wanted if wanted else not found


# ── one question ─────────────────────────────────────────────────────────────────────────────────────────────────────


def right(case: Case) -> bool | None:
    """Whether the evidence is shown, or an unanswerable question is refused. None if the question failed, or if it was
    answered and the set does not name the evidence."""
    if case.status == "failed":
        return None
    if not case.question.answerable:
        return not case.answered
    if not case.answered:
        return False
    judged = [is_evidence(case.question, citation) for citation in case.citations]
    return any(judged) if _known(case.question) else None


def _known(question: Question) -> bool:
    return bool(question.sentence or question.page or question.answer)


def _of_answerable(case: Case) -> bool:
    return case.question.answerable and case.status != "failed"


def _place_found(case: Case, depth: int = DEPTH) -> float | None:
    return _ranked(case, hit, depth)


def _ranked(
    case: Case, score: Callable[[Sequence[str], dict[str, float], int], float], depth: int = DEPTH
) -> float | None:
    """Return a score for the order of the passages. Each section counts once, at its best passage."""
    return score(_places(case.question, case.passages), _grades(case.question), depth) if _searched(case) else None


def _searched(case: Case) -> bool:
    return _of_answerable(case) and bool(case.question.page) and case.question.selection is None


def _places(question: Question, passages: Sequence[FoundPassage]) -> list[str]:
    """Return the places of the passages, each once. A right place is named `right N`, after its page in the set."""
    return list(dict.fromkeys(_place(question, passage) for passage in passages))


def _place(question: Question, passage: FoundPassage) -> str:
    if in_place(question, passage):
        for number, page in enumerate(question.page):
            if same_page(page, passage.source_url, passage.page_title):
                return f"right {number}"
    return passage.source_url


def _grades(question: Question) -> dict[str, float]:
    return {f"right {number}": 1.0 for number in range(len(question.page))}


def _page_found(case: Case) -> float | None:
    return float(any(on_page(case.question, passage) for passage in case.passages[:DEPTH])) if _searched(case) else None


def found_well(case: Case, passages: Sequence[FoundPassage]) -> float | None:
    """Return the nDCG of passages that were found with any wording; None if the right page is not known."""
    return ndcg(_places(case.question, passages), _grades(case.question), DEPTH) if _searched(case) else None


def _precision(case: Case) -> float | None:
    if not _of_answerable(case) or not case.citations or not _known(case.question):
        return None
    return sum(bool(is_evidence(case.question, citation)) for citation in case.citations) / len(case.citations)


def _place_precision(case: Case) -> float | None:
    if not _of_answerable(case) or not case.citations or not case.question.page:
        return None
    return sum(in_place(case.question, citation) for citation in case.citations) / len(case.citations)


def _recall(case: Case) -> float | None:
    if not _of_answerable(case) or not _known(case.question):
        return None
    return float(bool(right(case)))


def _recall_given(case: Case) -> float | None:
    return _recall(case) if case.answered else None


def _false_answer(case: Case) -> float | None:
    return None if case.question.answerable or case.status == "failed" else float(case.answered)


def _false_refusal(case: Case) -> float | None:
    return float(not case.answered) if _of_answerable(case) else None


def _match(case: Case, compare: Callable[[Case, str], float]) -> float | None:
    if not _of_answerable(case) or not case.answered or not case.question.answer:
        return None
    return max(compare(case, answer) for answer in case.question.answer)


def _answer_shown(case: Case, answer: str) -> float:
    return float(
        any(contains(text, answer) for text in (case.answer, *(citation.quote for citation in case.citations)))
    )


def _followup(case: Case) -> float | None:
    judged = right(case) if case.question.history else None
    return None if judged is None else float(judged)


def _quoted(case: Case) -> float | None:
    if not case.answered:
        return None
    return sum(len(words_of(quote)) for quote in dict.fromkeys(citation.quote for citation in case.citations))


def _taken(value: Callable[[Case], float]) -> Callable[[Case], float | None]:
    return lambda case: None if case.status == "failed" else value(case)


def _whether_right(case: Case) -> float | None:
    judged = right(case)
    return None if judged is None else float(judged)


def ndcg(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return the nDCG: the discounted gain of the first `depth`, relative to the best possible order. The gain is
    linear in the grade, as in BEIR."""
    ideal = _discounted(sorted(grades.values(), reverse=True)[:depth])
    return _discounted([grades.get(name, 0.0) for name in ranked[:depth]]) / ideal if ideal else 0.0


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return one over the rank of the first right document, or 0 if none is among the first `depth`."""
    return next((1 / rank for rank, name in enumerate(ranked[:depth], 1) if grades.get(name, 0.0) > 0), 0.0)


def hit(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return 1 if a right document is among the first `depth`, else 0."""
    return float(any(grades.get(name, 0.0) > 0 for name in ranked[:depth]))


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


MEASURES: Final[tuple[Measure, ...]] = (
    Measure("right", "All", "right: evidence shown, or rightly refused", "share", "higher", _whether_right),
    Measure("page_hit", "Retrieval", f"right page among the first {DEPTH} passages", "share", "higher", _page_found),
    Measure("hit_1", "Retrieval", "right section first", "share", "higher", lambda case: _place_found(case, 1)),
    Measure("hit", "Retrieval", f"right section among the first {DEPTH}", "share", "higher", _place_found),
    Measure("ndcg", "Retrieval", f"nDCG@{DEPTH} of the right section", "mean", "higher", lambda c: _ranked(c, ndcg)),
    Measure("recall", "Citations", "recall: evidence quoted, of all answerable", "share", "higher", _recall),
    Measure("recall_given", "Citations", "evidence quoted, of answers given", "share", "higher", _recall_given),
    Measure("precision", "Citations", "precision: quotes that are the evidence", "mean", "higher", _precision),
    Measure("place", "Citations", "quotes from the right section", "mean", "higher", _place_precision),
    Measure("quoted", "Citations", "words quoted in an answer", "count", "", _quoted),
    Measure("false_answer", "Refusals", "false answers, of unanswerable", "share", "lower", _false_answer),
    Measure("false_refusal", "Refusals", "false refusals, of answerable", "share", "lower", _false_refusal),
    Measure(
        "f1", "Answers", "token F1 with the right answer", "mean", "higher",
        lambda case: _match(case, lambda c, answer: token_f1(_MARKER.sub("", c.answer), answer)),
    ),
    Measure(
        "contained", "Answers", "right answer, word for word, in answer or quotes", "share", "higher",
        lambda case: _match(case, _answer_shown),
    ),
    Measure("followup", "Follow-ups", "right, of questions with a history", "share", "higher", _followup),
    Measure("latency", "Cost", "time of an answer", "ms", "lower", _taken(lambda case: case.latency_ms)),
    Measure("tokens", "Cost", "tokens of an answer", "count", "lower", _taken(lambda case: case.tokens)),
    Measure("calls", "Cost", "model calls of an answer", "count", "lower", _taken(lambda case: case.calls)),
    Measure("withheld", "Cost", "sentences withheld", "count", "", _taken(lambda case: case.withheld)),
    Measure("failed", "Cost", "questions that failed", "share", "lower", lambda case: float(case.status == "failed")),
)  # fmt: skip
