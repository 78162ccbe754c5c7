"""Fits the confidence of answers written by a model, and writes `src/chapterverse/answering/model.json`.

    python -m bench.answers.fit

The rows are replays of the recorded answers: unchanged with a perfect and with a noisy judge, and half false with a
noisy judge (with a perfect judge there are too few wrong answers). An answer is right if nothing false was shown and it
is complete. A blind reader decides whether it is complete. If nobody has read it, it counts as complete if at most a
quarter of its true statements was withheld: of 12 such answers that were read, 11 were complete.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from bench.answers.judges import LabelJudge
from bench.answers.readings import valid
from bench.answers.recorded import Recording, digest, load
from bench.answers.replay import Replayed, replay
from bench.keyless.fit import logistic
from bench.results import commit
from chapterverse.answering.confidence import MODEL, ModelSigns, fitted
from chapterverse.evidence.statement import Statement

MISSING: Final = 0.25  # largest share of true statements that a complete answer may lack
SIGNS: Final = ("proven", "covered", "replaced")


async def main() -> None:
    """Replay, fit and write."""
    signs: list[ModelSigns] = []
    right: list[bool] = []
    recordings = load()
    for one in recordings:
        for judge, drafts in (("right", one.drafts()), ("noisy", one.drafts()), ("noisy", one.lies(2))):
            seen = await replay(drafts, one.evidence(), LabelJudge(one, judge))
            if seen.counts.shown:
                signs.append(_signs(one, seen))
                right.append(_is_right(one, drafts, seen))
    curve = logistic(signs, right, SIGNS) | {
        "fitted_on": "bench/recorded, replayed with a right and a noisy judge, and half false with a noisy one",
        "commit": commit(),
        "answers": len(right),
        "right": sum(right),
    }
    MODEL.write_text(json.dumps(curve, indent=1) + "\n", "utf-8")
    fitted.cache_clear()
    print(json.dumps(curve, indent=1))


def _signs(one: Recording, seen: Replayed) -> ModelSigns:
    units = [unit for proven in seen.proven for unit in proven.units]
    places = {passage.number: passage.breadcrumb for passage in seen.evidence.passages}
    quotes = [f"{places[unit.ref.passage]} {unit.text}" for unit in units]
    return ModelSigns.of(one.question, quotes, seen.counts)


def _is_right(one: Recording, drafts: Sequence[Statement], seen: Replayed) -> bool:
    false = {labelled.false for labelled in one.statements if labelled.false} & {draft.text for draft in drafts}
    if any(proven.statement.text in false and not proven.replaced for proven in seen.proven):
        return False
    true = [labelled.statement for labelled in one.statements if labelled.supported]
    lost = sum(not seen.shows(statement) for statement in true) - seen.counts.replaced
    return valid().get((one.item, one.prompt, digest(seen.text)), lost <= MISSING * len(true))


if __name__ == "__main__":
    asyncio.run(main())
