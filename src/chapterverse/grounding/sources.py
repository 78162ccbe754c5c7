"""The numbers of an answer: which stretch of which passage each of them points to.

Owns the numbering. A source is one contiguous stretch of one passage, so its quote is exactly what bears a sentence
out: evidence that overlaps or touches a stretch makes it longer, up to three sentences; evidence further away in the
same passage becomes a source of its own. A reader who follows a number then sees the sentences that count, and not
the paragraph between them. Numbers are given in the order of first appearance and never change.
"""

from chapterverse.grounding.passages import Citation, Evidence
from chapterverse.text import sentences

_LONGEST = 3  # sentences of a stretch that is made longer


class Sources:
    """Gives numbers to evidence."""

    def __init__(self) -> None:
        self._found: list[Evidence] = []

    def cite(self, evidence: Evidence) -> int:
        """The number of the source that holds this evidence."""
        for number, known in enumerate(self._found, start=1):
            if known.passage.number != evidence.passage.number:
                continue
            start, end = min(known.start, evidence.start), max(known.end, evidence.end)
            if (start, end) == (known.start, known.end):
                return number
            text = known.passage.text
            apart = text[min(known.end, evidence.end) : max(known.start, evidence.start)].strip()
            if not apart and len(sentences(text[start:end])) <= _LONGEST:
                self._found[number - 1] = Evidence(known.passage, start, end)
                return number
        self._found.append(Evidence(evidence.passage, evidence.start, evidence.end))
        return len(self._found)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What was cited, in the order of the numbers."""
        return tuple(self._found)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Where each number points."""
        return tuple(self.citation(number) for number in range(1, len(self._found) + 1))

    def citation(self, number: int) -> Citation:
        """Where one number points."""
        found = self._found[number - 1]
        return Citation(number, found.passage.number, found.start, found.end)
