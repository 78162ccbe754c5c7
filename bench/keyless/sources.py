"""Puts the sources of the books that questions were written about into one folder, one folder a book.

    python -m bench.keyless.sources BOOKS REPOSITORIES [--data SHARED_DATA] [BOOK ...]

REPOSITORIES has a clone of each repository that the `books.json` of questions and of training name, as `owner+name` or,
without a work tree, `owner+name/repo`. Books that came as archives are read from SHARED_DATA. Files that are not text,
and files that the clone does not have, are left out.
"""

import argparse
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .sets import QUESTIONS

WRITTEN = QUESTIONS.parents[2] / "training" / "section_reader" / "written"
LARGEST = 2_000_000  # bytes; a text file of documentation is smaller


def main() -> None:
    """Write every book that is wanted, and say how many files it has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("books", type=Path)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("names", nargs="*", metavar="BOOK")
    parser.add_argument("--data", type=Path)
    options = parser.parse_intermixed_args()
    for folder in (QUESTIONS, WRITTEN):
        for name, book in json.loads((folder / "books.json").read_text("utf-8")).items():
            if options.names and name not in options.names:
                continue
            files = _files(book, options.repositories, options.data)
            named = {file for line in _lines(folder, name) for file in _named(json.loads(line))}
            count = sum(_write(options.books / name / path, content) for path, content in _chosen(files, book, named))
            print(f"{name}: {count} files" if count else f"{name}: not found")


def _files(book: dict[str, Any], repositories: Path, data: Path | None) -> dict[str, Any]:
    """Every path of the book's source, with its content or the git command that prints it."""
    if "archive" in book:
        inside = book.get("inside", "")
        if data is None or not (data / book["archive"]).exists():
            return {}
        with tarfile.open(data / book["archive"]) as archive:
            return {
                member.name.removeprefix(inside): file.read()
                for member in archive
                if member.name.startswith(inside) and (file := archive.extractfile(member))
            }
    clone = repositories / book["repository"].replace("/", "+")
    clone = clone / "repo" if (clone / "repo").exists() else clone
    if "commit" not in book or not clone.exists():
        return {}
    tree = _git(clone, "ls-tree", "-r", "-z", book["commit"]).decode().split("\0")
    return {line.split("\t")[1]: (clone, "cat-file", "blob", line.split()[2]) for line in tree if " blob " in line}


def _chosen(files: dict[str, Any], book: dict[str, Any], named: set[str]) -> Iterator[tuple[str, bytes]]:
    """Of large books every n-th file is taken, the files that questions name, and those that others include."""
    every, without = book.get("every", 1), book.get("without", ())
    wanted = [path for path in sorted(files) if path.startswith(tuple(book["paths"]))]
    kept = [path for path in wanted if not any(part in path for part in without)]
    included = {path for path in kept if path.rpartition("/")[2].startswith("_")}
    for path in sorted({*kept[::every], *included, *named.intersection(wanted)}):
        content = files[path] if isinstance(files[path], bytes) else _git(*files[path])
        if content and len(content) <= LARGEST and b"\0" not in content:
            yield path, content


def _git(clone: Path, *command: str) -> bytes:
    """Output of a command; nothing where the clone lacks the object."""
    return subprocess.run(["git", "-C", str(clone), *command], capture_output=True, check=False).stdout


def _lines(folder: Path, name: str) -> Iterator[str]:
    for file in sorted({*folder.glob(f"{name}_*.jsonl"), *folder.glob(f"*_{name}_*.jsonl")}):
        yield from file.read_text("utf-8").splitlines()


def _named(row: dict[str, Any]) -> Iterator[str]:
    for one in (row, *row.get("turns", ()), *row.get("parts", ()), *row.get("also", ())):
        if "file" in one:
            yield one["file"]
        if one is not row:
            yield from _named(one)


def _write(target: Path, content: bytes) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return True


if __name__ == "__main__":
    main()
