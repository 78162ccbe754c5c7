"""Why a bar is missed, and what would reach it: shown only where it is missed.

A reason is written by whoever looked at the cases, and dated.
"""

from typing import Final

REASONS: Final[dict[str, str]] = {
    "doc2dial-quotes": (
        "Looked at on 2026-11-15: the gold is the stretch that a person's next utterance rested on, one of several "
        "that answer: sister pages say the same, and some turns ask nothing (“yes, ok”). It stands in one of the five "
        "passages read for 86 % of answers and in the first of them for 51 %, so two or three quoted sentences cannot "
        "hold it in 85 % of all answers; of the answers with the highest confidence the curve tells. A reader that "
        "was trained on more dialogues would help, and people's marks of all sentences that answer."
    ),
    "squad-refusals": (
        "Looked at on 2026-11-15: most false answers are of questions in which a name or a word of the paragraph was "
        "swapped for another one of it. The threshold that gives both bars moves with the subject of the article "
        "(`training/README.md`); the curve shows it. More articles to train on would help: there are six."
    ),
    "ece": (
        "Looked at on 2026-11-15: the share of right answers at one confidence differs from book to book: those of the "
        "example book are right far more often than those of Doc2Dial or MTRAG, where only what people marked counts "
        "as right. One map fits their mean, not each. A map fitted to each book would need questions about it: an "
        "author who has some can see the reliability diagram of `chapterverse eval`."
    ),
}
