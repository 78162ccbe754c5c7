"""Writes a public set for `chapterverse eval`: `python -m bench.sets NAME FOLDER`.

The data is read from `shared/data` next to the repository's folder and is never committed.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bench.retrieval.sets import DATA
from bench.sets.clapnq import clapnq
from bench.sets.crossbook import example, strangers, strangers_help
from bench.sets.doc2dial import doc2dial
from bench.sets.mtrag import mtrag_clapnq, mtrag_cloud
from bench.sets.shape import PublicSet, write
from bench.sets.squad import squad

SETS: Final[Mapping[str, Callable[[Path], PublicSet]]] = {
    one.__name__: one
    for one in (example, squad, doc2dial, clapnq, mtrag_clapnq, mtrag_cloud, strangers, strangers_help)
}


def main(arguments: list[str]) -> None:
    """Convert one set and print how to use it."""
    if len(arguments) != 2 or arguments[0] not in SETS:
        sys.exit(f"python -m bench.sets NAME FOLDER; NAME is one of {', '.join(SETS)}")
    name, folder = arguments[0], Path(arguments[1])
    if not DATA.is_dir() and name != "example":
        sys.exit(f"No data at {DATA}.")
    converted = SETS[name](DATA)
    write(converted, folder)
    print(f"{converted.title}: {len(converted.questions)} questions; {converted.note}")
    print(f"chapterverse ingest {folder / 'book'}\nchapterverse eval {folder / 'questions.jsonl'} --out reports/")


if __name__ == "__main__":
    main(sys.argv[1:])
