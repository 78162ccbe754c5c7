"""Texts, and the vectors and scores that every CPU must give for them.

python -m tests.any_cpu.reference          writes reference.npz, after a model was replaced
python -m tests.any_cpu.reference OUT.npz  writes the values of this CPU
"""

import asyncio
import sys
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.trained import Passage, SectionReader
from chapterverse.units import blocks_of_text, cut_units

REFERENCE: Final = Path(__file__).with_name("reference.npz")

# The maximum difference of a number in a vector and of a score. float32 on two kinds of CPU differs by about 1e-7 in a
# vector and 7e-6 in a score. Products of int8 activations differ by .03 and .15, which changes ranks and decisions.
VECTOR, SCORE = 5e-5, 1e-3

PASSAGES: Final = (
    "A watering timer opens the valve at the hour you set and closes it after the given minutes. When it "
    "rains, the sensor on the roof reports more than two millimetres and the timer skips the next round. The "
    "default is 20 minutes.",
    "## Install\n\nThe package needs Python 3.11.\n\n```bash\npip install gardener\ngardener init --zone north\n```\n\n"
    "The command writes `garden.toml` into the folder in which it is run. An existing file is kept unless you "
    "pass `--force`.",
    "| sensor | measures | range |\n|---|---|---|\n| soil probe | moisture | 0–100 % |\n| light cell | brightness"
    " | 1–60,000 lux |\n| gauge | rain | 0.2–50 mm |",
    "Tomatoes want a sunny place and much water. Put the seedlings out after the last frost, half a metre "
    "apart, and tie them to a stick. Pinch out the side shoots once a week, otherwise the plant grows leaves "
    "instead of fruit.",
    "If the pump does not start, look at the fuse first. A blown fuse is black inside. Replace it with one of "
    "5 A; a stronger one does not protect the motor. If the new fuse blows as well, the motor is blocked: open"
    " the lid and remove leaves and sand.",
    "Release notes. 2.4: zones can be renamed. 2.3: the timer keeps its settings when the power fails. 2.2: "
    "`--force` was added. 2.1: the light cell is read every minute instead of every hour. 2.0: Python 3.11 is "
    "needed.",
    "1. Close the main tap.\n2. Open the drain at the lowest place.\n3. Take the battery out of the timer.\n4. "
    "Store the timer in a dry room above 5 °C.\n\nDo this before the first frost: water that freezes in the pipe"
    " breaks it.",
    "Der Regenmesser steht frei und waagerecht. Straße, Café, naïve, 灌漑, полив: names of places keep their spelling.",
    " ".join(
        f"Zone {number} holds {3 * number + 4} plants and is watered every {number % 4 + 1} days at {5 + number % 3} "
        f"in the morning, with {10 + 7 * number % 13} litres for a square metre."
        for number in range(1, 25)
    ),
)

# Questions, each with the indexes of the passages that are read for it.
QUESTIONS: Final = {
    "How long does the timer water by default?": (0, 5),
    "Does it water when it rains?": (0, 2, 6),
    "How do I overwrite an existing garden.toml?": (1, 5),
    "What does the light cell measure?": (2, 5),
    "Why does my tomato plant grow many leaves and no fruit?": (3, 4),
    "The pump stays silent. What should I check?": (4, 0),
    "Which version keeps the settings after a power failure?": (5, 4),
    "How do I prepare the system for winter?": (6, 3),
    "plants in zone 17": (8, 3),
    "What is the capital of Norway?": (0, 7),
    "Wo steht der Regenmesser?": (7,),
}


def computed() -> dict[str, NDArray[np.float32]]:
    """Compute the values of this CPU: vectors of all texts, scores of all pairs, scores of their units."""
    pairs = [(question, _passage(PASSAGES[at])) for question, places in QUESTIONS.items() for at in places]
    reads = SectionReader().read(pairs)
    return {
        "vectors": asyncio.run(_vectors()),
        "answers": np.array([read.answers for read in reads], np.float32),
        "units": np.array([score for read in reads for score in read.units], np.float32),
    }


def largest(found: dict[str, NDArray[np.float32]]) -> dict[str, float]:
    """Return the largest difference from the shipped values, by kind."""
    with np.load(REFERENCE, allow_pickle=False) as shipped:
        return {name: float(abs(found[name] - shipped[name]).max()) for name in ("vectors", "answers", "units")}


def differences(found: dict[str, NDArray[np.float32]]) -> list[str]:
    """Return the differences from the shipped values: numbers beyond the tolerance, ranks, decisions."""
    faults = [
        f"{name} differ by {most:.2g}"
        for name, most in largest(found).items()
        if most > (VECTOR if name == "vectors" else SCORE)
    ]
    with np.load(REFERENCE, allow_pickle=False) as shipped:
        if not np.array_equal(_ranks(found["vectors"]), _ranks(shipped["vectors"])):
            faults.append("passages are found in another order")
        if not np.array_equal(found["answers"] > 0, shipped["answers"] > 0):
            faults.append("other passages are taken for an answer")
    return faults


def _ranks(vectors: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return for each question the passages in order of similarity."""
    passages, questions = vectors[: len(PASSAGES)], vectors[len(PASSAGES) :]
    return np.argsort(-(questions @ passages.T), axis=1, kind="stable")


async def _vectors() -> NDArray[np.float32]:
    embedder = LocalEmbedder(threads=2)
    try:
        return await embedder.embed_passages([*PASSAGES, *QUESTIONS])
    finally:
        await embedder.close()


def _passage(text: str) -> Passage:
    return Passage(text, tuple((unit.start, unit.end) for unit in cut_units(text, blocks_of_text(text))))


if __name__ == "__main__":
    np.savez(sys.argv[1] if len(sys.argv) > 1 else REFERENCE, allow_pickle=False, **computed())
