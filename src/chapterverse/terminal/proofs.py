"""How the checks of a proof look: a line for each quote, what is there now where it changed, a line of counts."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from chapterverse.conversations.topic import shorten
from chapterverse.editions import edition_label
from chapterverse.evaluation.proofs import Proof, QuoteCheck, unproven
from chapterverse.evaluation.quotes import State
from chapterverse.terminal import out, printable

QUOTED: Final = 300  # characters of a quote
_STYLES: Final[dict[State, str]] = {"stands": "green", "moved": "yellow", "changed": "bold red", "gone": "bold red"}


def show_checks(proof: Proof, checks: Sequence[QuoteCheck]) -> None:
    """Each quote and what became of it."""
    for check in checks:
        out.print(Text.assemble(f"[{check.number}] ", (check.state, _STYLES[check.state]), "  ", _where(check)))
        out.print(Text(f"    {_line(check.quote.text)}", style="dim"))
        if check.state == "changed":
            out.print(f"    now: {_line(check.now)}")
    failed = unproven(proof, checks)
    for statement in failed:
        out.print(Text.assemble(("no longer proven: ", "bold"), _line(statement.text)))
    counts = Counter(check.state for check in checks)
    told = ", ".join(f"{counts[state]} {state}" for state in _STYLES if counts[state])
    out.print(f"{len(checks)} quote{'s' * (len(checks) != 1)}{': ' + told if told else ''}.")


def _where(check: QuoteCheck) -> str:
    quote = check.quote
    place = "  ".join(filter(None, (quote.source_url, edition_label(quote.book, quote.version))))
    to_another = check.state != "gone" and check.url and not quote.source_url.startswith(check.url)
    return printable(f"{place} → {check.url}" if to_another else place)


def _line(text: str) -> str:
    return printable(shorten(" ".join(text.split()), QUOTED))
