"""Grounding: citations are verified, not requested.

Owns the gate that a model's text passes before anybody sees it. `Grounder` takes the text as it streams and gives back
sentences that the issued passages bear out, each with its citations, and everything else as withheld. Never uses the
network, never calls a language model, and does not depend on how the text was split on its way. Rules judge; a small
trained encoder may give a second opinion (`Verifier`), and then checking blocks: `cut` on the event loop, `check` in a
thread.

    grounder = Grounder([Passage(1, chunk.text, chunk.breadcrumb), ...])
    for delta in stream:
        for result in grounder.feed(delta):
            ...                            # Shown(text, citations) or Withheld(text, reason, why)
    grounder.finish()
    grounder.citations                     # where each [n] of the answer points

Offsets are in characters (Unicode code points) and count into the text of the passage.
"""

from chapterverse.grounding.cutter import Unit
from chapterverse.grounding.grounder import MAX_CHARS, MAX_SHOWN, MAX_UNITS, Grounder
from chapterverse.grounding.lines import lines_of
from chapterverse.grounding.passages import Citation, Evidence, Judge, Passage, Reason, Shown, Verdict, Withheld
from chapterverse.grounding.refusals import is_refusal
from chapterverse.grounding.support import Rules, nearest
from chapterverse.grounding.verifier import Verifier

__all__ = [
    "MAX_CHARS",
    "MAX_SHOWN",
    "MAX_UNITS",
    "Citation",
    "Evidence",
    "Grounder",
    "Judge",
    "Passage",
    "Reason",
    "Rules",
    "Shown",
    "Unit",
    "Verdict",
    "Verifier",
    "Withheld",
    "is_refusal",
    "lines_of",
    "nearest",
]
