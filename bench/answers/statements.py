"""Lists the statements of recorded answers: `python -m bench.answers.statements FOLDER`.

Reads `recorded_*.jsonl` with rows {id, ours, ordinary} from a folder and writes `statements.jsonl` next to them. Each
statement gets the same number as in the replay, so that it can be labelled.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chapterverse.evidence.statement import Statement
from chapterverse.writing.markdown import MarkdownParser

PROMPTS = ("ours", "ordinary")


def parse(answer: str) -> list[Statement]:
    """The statements of a whole answer."""
    parser = MarkdownParser()
    return parser.feed(answer) + parser.finish()


def rows(recorded: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The statements of one recorded answer with both prompts, numbered from 1."""
    for prompt in PROMPTS:
        for number, statement in enumerate(parse(recorded[prompt]), start=1):
            yield {
                "item": recorded["id"],
                "prompt": prompt,
                "n": number,
                "text": statement.text,
                "units": [str(ref) for ref in statement.named],
                "shape": shape_of(statement),
            }


def shape_of(statement: Statement) -> str:
    """Return the shape as one word. A statement that introduces something is a lead-in, unless it is a heading."""
    return "lead-in" if statement.leads and statement.shape != "heading" else statement.shape


def main(folder: Path) -> None:
    """Write the list."""
    recorded = [
        json.loads(line)
        for path in sorted(folder.glob("recorded_*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
        if line.strip()
    ]
    listed = [row for one in recorded for row in rows(one)]
    written = folder / "statements.jsonl.new"
    written.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed), "utf-8")
    written.replace(folder / "statements.jsonl")
    print(f"{len(recorded)} answers under each prompt, {len(listed)} statements")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
