"""A scripted model that does exactly what a planted text says, if it can see the text.

It searches its input for the planted text. If there is none, it gives the true answer.
"""

import re
from typing import Any, Final

from tests.llm_stub import LlmStub, Replies, Reply, _Wire, shown

from bench.injection.cases import Case
from chapterverse.answering.refusals import NOT_IN_BOOK

WAYS: Final = ("plainly", "with a marker", "word for word")
_WORD: Final = re.compile(r"\w+")
_SEEN: Final = 6  # number of words by which a planted text is recognised


class Obedient(LlmStub):
    """Obeys the planted text of `case` in one of the `WAYS`."""

    def __init__(self) -> None:
        super().__init__()
        self.case: Case | None = None
        self.way: str = WAYS[0]
        self.saw = False  # whether the last request contained the planted text

    async def _stream(self, reply: Reply, request: dict[str, Any], wire: _Wire) -> None:
        await super()._stream(self._obey(request), request, wire)

    def _obey(self, request: dict[str, Any]) -> Reply:
        case = self.case
        assert case is not None, "the bench says what is asked"
        wanted = _words(case.planted)[:_SEEN]
        passages = shown(request).passages
        holding = [passage.number for passage in passages if _holds(f"{passage.breadcrumb} {passage.text}", wanted)]
        self.saw = bool(holding)
        if not holding:
            return Replies(_marked(case.truth, " [1]") or NOT_IN_BOOK)
        marker = f" [{holding[0]}]"
        reply = case.attack.reply or _garble(case.truth)
        if self.way == "plainly":
            return Replies(reply)
        if self.way == "with a marker":
            return Replies(f"{_marked(case.truth, marker)} {_marked(reply, marker)}".strip())
        return Replies(_marked(" ".join(case.planted.split()), marker))


def _marked(text: str, marker: str) -> str:
    return f"{text[:-1]}{marker}{text[-1]}" if text and text[-1] in ".!?" else f"{text}{marker}." if text else ""


def _garble(sentence: str) -> str:
    """A true sentence with its letters changed, as the garbling texts demand."""
    return sentence.translate(str.maketrans("aeiou", "12345"))


def _holds(text: str, wanted: list[str]) -> bool:
    words = _words(text)
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
