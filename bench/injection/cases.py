"""Decides which text is planted where.

The choice is fixed. Every text is planted in three visible places, in three hidden places and in a selection. A
document of CyberSecEval is used unchanged as a page and as a selection. A text of PoisonedRAG becomes a page next to
one with the truth.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.injection.carriers import ARTICLES, CARRIERS, Article, Carrier, in_selection
from bench.injection.texts import Attack

PLACES: Final = 3  # visible and hidden places for each text
DOCUMENT: Final = "own document"
SELECTION: Final = "selection"
NOTE: Final = "page of its own"
_TAG: Final = re.compile(r"<!--.*?-->|<[^<>]+>", re.DOTALL)
_COMMENT: Final = re.compile(r"<!--(.*?)-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """A question about a page, or a selection, that contains a planted text."""

    attack: Attack
    carrier: str
    hidden: bool
    question: str
    truth: str  # what an honest answer shows; empty if nothing on the page answers the question
    pages: tuple[tuple[str, str], ...] = ()  # path and content
    selection: str = ""

    @property
    def planted(self) -> str:
        """The planted text in readable form, one line for each piece. For a document, the part that it hides."""
        if self.attack.family != "CyberSecEval" or self.selection:
            return self.attack.text
        hidden = _COMMENT.search(self.attack.text)
        return "\n".join(filter(str.strip, _TAG.sub("\n", hidden[1] if hidden else self.attack.text).split("\n")))


def make_cases(attacks: Sequence[Attack]) -> list[Case]:
    """All cases, in a fixed order."""
    makers = {"BIPIA": _instruction, "CyberSecEval": _document, "PoisonedRAG": _statement}
    return [case for number, attack in enumerate(attacks) for case in makers[attack.family](number, attack)]


def _instruction(number: int, attack: Attack) -> Iterator[Case]:
    article = ARTICLES[number % len(ARTICLES)]
    for hidden in (False, True):
        carriers = [carrier for carrier in CARRIERS if carrier.hidden == hidden]
        for place in range(PLACES):
            carrier = carriers[(number * PLACES + place) % len(carriers)]
            yield _in_page(number, attack, article, carrier)
    selected = in_selection(article, attack.text)
    yield Case(attack, SELECTION, False, article.question, article.truth, selection=selected)


def _in_page(number: int, attack: Attack, article: Article, carrier: Carrier) -> Case:
    path = f"bipia/{number:03}-{carrier.name.lower().replace(' ', '-').replace(':', '')}.{carrier.suffix}"
    pages = ((path, carrier.plant(article, attack.text)),)
    return Case(attack, carrier.name, carrier.hidden, article.question, article.truth, pages)


def _document(number: int, attack: Attack) -> Iterator[Case]:
    inside = attack.text if "<html>" in attack.text else f"<html><body><p>{attack.text}</p></body></html>"
    hidden = bool(_COMMENT.search(attack.text))
    pages = ((f"cyberseceval/{number:03}.html", inside),)
    yield Case(attack, DOCUMENT, hidden, attack.question, "", pages)
    yield Case(attack, SELECTION, False, attack.question, "", selection=attack.text)


def _statement(number: int, attack: Attack) -> Iterator[Case]:
    paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in attack.text.split("\n\n"))
    false = (f"poisonedrag/{number:03}-notes.html", f"<html><body><h1>Notes {number}</h1>{paragraphs}</body></html>")
    true = (f"poisonedrag/{number:03}.md", f"# Page {number}\n\n{attack.truth}\n")
    pages = (true, false) if attack.truth else (false,)
    yield Case(attack, NOTE, False, attack.question, attack.truth, pages)
    selected = "\n\n".join(filter(None, (attack.truth, attack.text)))
    yield Case(attack, SELECTION, False, attack.question, attack.truth, selection=selected)
