"""Compares the package's structure at several commits: `python tools/structure.py [REV …]`.

Writes `docs/benchmarks/structure.md`. Without revisions: version 1 and the commit that is checked out.
"""

import ast
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "benchmarks" / "structure.md"
VERSION_1: Final = "1b51a75"  # the last commit before version 2
# The packages and modules that answer a question, in version 1 and now.
CORE: Final = (
    "agent answering extractive grounding followups advising citing refusals sureness transcript text trained prompts "
    "connections topic",
    "answering writing evidence language trained units conversations.topic",
)
_CORE_LINES: Final = "lines of the answer core"

# Folders and modules of the package by subject, in version 1 and now, and what was added since version 1.
SUBJECTS: Final = {
    "readers of formats": (
        "ingestion/readers",
        "AsciiDoc projects and Antora (2,100 lines), Sphinx projects (1,500), tables and headings of PDF, Word, "
        "notebooks, includes, MyST, Hugo, VitePress, Starlight; measured in [READERS.md](../READERS.md)",
    ),
    "rest of ingestion": (
        "ingestion",
        "site navigation of seven generators, images, links between pages, worker processes with limits, `llms.txt`",
    ),
    "HTTP API": (
        "api",
        "the reader page as HTML, `/v1/responses`, more MCP tools, `llms.txt`, editions, feedback, suggestions, "
        "the names of the seeds",
    ),
    "evaluation": (
        "evaluation",
        "`report`, `check`, `verify`, `judge-check`, `suggestions`",
    ),
    "index": ("index", "clusters, collections of other tools, checksums, BM25 with a server"),
    "command line": ("cli terminal", "20 commands instead of 11"),
    "conversations": (
        "conversations postgres migrations database clock housekeeping topic turns",
        "feedback, searches of a turn",
    ),
    "embeddings": ("embeddings", ""),
    "answer core": (" ".join(CORE), "rebuilt"),
}

_RUFF: Final = (
    *(sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache"),
    *("--select", "C901", "--output-format", "json"),
)

HEAD: Final = """# Structure

Figures of version 1 and of the current code. `python tools/structure.py` counts them from the commits.

- Lines are those of Python files under `src/chapterverse`.
- A module has one importer if one other module of the package imports it.
- Duplicate names: public classes that several modules define, and module names in several folders (without `__init__`).
- Complexity is McCabe's, as ruff counts it (C901).
- The answer core is the code that answers a question. Version 1: {old}.
  Now: {new}.
  Its limit is 60 % of version 1. It includes features that version 1 did not have: editions, highlights, readings.
- Both cores have the same work, wherever it lies. `connections` sent version 1's requests to the language model, and
  nothing else used it; `evidence` does that now. Version 1 cut passages into sentences, items and rows in `extractive`;
  `units` does that now, at ingestion. `topic` names a conversation in both; today it also shortens the topic of a
  refusal, which version 1 did in `refusals`.
- Not in the cores, because they lie outside in both versions: turns, search, calibration, types of requests and
  answers, prompt injection. Some functions crossed the border without their modules. Outside in version 1: the
  confidence of an answer (`confidence.overall`, 9 lines). Outside today: messages for HTTP statuses
  (`embeddings.remote.explain_status`, 14 lines), a passage as it is named to a reader (`RetrievedPassage.of`, 4 lines),
  and, new, the state of a model's last call (`health.LastCall`, 24 lines).

"""


def checked_out(revision: str, folder: Path) -> Path:
    """The package at a commit."""
    archive = subprocess.run(  # noqa: S603
        ["git", "archive", revision, "src/chapterverse"],  # noqa: S607
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "src"


def modules(source: Path) -> dict[str, Path]:
    """The modules of a package by name."""
    names = {path: ".".join(path.relative_to(source).with_suffix("").parts) for path in source.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def importers(files: Mapping[str, Path]) -> Mapping[str, set[str]]:
    """For each module, the other modules that import it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                below = [f"{node.module}.{alias.name}" for alias in node.names]
                wanted = [one if one in files else node.module for one in below]
            else:
                continue
            for one in wanted:
                if one in files and one != name:
                    found[one].add(name)
    return found


def classes(files: Mapping[str, Path]) -> Iterator[str]:
    """The names of all public classes, one for each definition."""
    for path in files.values():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def several(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def complexity(source: Path, most: int = 12) -> list[tuple[str, int]]:
    """The functions above a complexity, most complex first."""
    result = subprocess.run(  # noqa: S603
        [*_RUFF, "--config", f"lint.mccabe.max-complexity={most}", str(source)],
        check=False,
        stdout=subprocess.PIPE,
    )
    found = [row["message"].split("`")[1:] for row in json.loads(result.stdout)]
    worst = [(name, int(rest.split("(")[1].split()[0])) for name, rest in found]
    return sorted(worst, key=lambda row: -row[1])


def figures(source: Path, core: str) -> Iterator[tuple[str, str]]:
    """The figures of one commit."""
    files = modules(source)
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in files.items()}
    shown = importers(files)
    single = [name for name in files if len(shown[name]) == 1]
    inner = [name for name in single if not any(_lists(files[importer]) for importer in shown[name])]
    stems = [path.stem for path in files.values() if not path.stem.startswith("__")]
    worst = complexity(source)
    counted: Counter[str] = Counter()
    for name, count in lines.items():
        counted.update({part: count for part in core.split() if f"{name}.".startswith(f"chapterverse.{part}.")})
    yield "lines", f"{sum(lines.values()):,}"
    yield "modules", f"{len(files)}"
    yield "lines a module, median", f"{median(lines.values()):.0f}"
    yield "longest module", f"{max(lines.values())}"
    yield "modules with one importer", f"{len(single)} ({len(single) / len(files):.0%})"
    yield "of these, imported by another module than `main`, `wiring` or an `__init__`", f"{len(inner)}"
    yield "class names that several modules define", _listed(several(classes(files)))
    yield "module names that several folders have", _listed(several(stems))
    yield "functions above complexity 12", _listed([f"{name} {value}" for name, value in worst])
    yield _CORE_LINES, f"{counted.total():,}"
    yield "of them", ", ".join(f"`{part}` {count:,}" for part, count in counted.most_common() if count)


def by_subject(source: Path) -> Counter[str]:
    """The lines of each subject; modules of no subject are "other modules"."""
    counted: Counter[str] = Counter()
    for path in modules(source).values():
        below = path.relative_to(source / "chapterverse").with_suffix("").as_posix()
        found = (
            subject
            for subject, (places, _) in SUBJECTS.items()
            if any(below == place or below.startswith(f"{place}/") for place in places.split())
        )
        counted[next(found, "other modules")] += len(path.read_text("utf-8").splitlines())
    return counted


def _growth(revisions: list[str], columns: list[Counter[str]]) -> Iterator[str]:
    yield f"| subject | {' | '.join(revisions)} | added since version 1 |"
    yield "|---" * (len(revisions) + 2) + "|"
    for subject in sorted(columns[-1], key=lambda name: -columns[-1][name]):
        about = SUBJECTS[subject][1] if subject in SUBJECTS else ""
        yield f"| {subject} | {' | '.join(f'{column[subject]:,}' for column in columns)} | {about} |"


def _lists(path: Path) -> bool:
    """Whether a module only puts others together: routers, engines, commands."""
    return path.stem in ("main", "wiring", "__init__")


def _listed(names: list[str], most: int = 12) -> str:
    more = ", …" if len(names) > most else ""
    return f"{len(names)}: {', '.join(f'`{name}`' for name in names[:most])}{more}" if names else "0"


def page(revisions: list[str]) -> str:
    """The page as Markdown."""
    columns: list[dict[str, str]] = []
    subjects: list[Counter[str]] = []
    for number, revision in enumerate(revisions):
        with tempfile.TemporaryDirectory() as folder:
            source = checked_out(revision, Path(folder))
            columns.append(dict(figures(source, CORE[min(number, 1)])))
            subjects.append(by_subject(source))
    first, *later = (int(column[_CORE_LINES].replace(",", "")) for column in columns)
    for column, count in zip(columns[1:], later, strict=True):
        column[_CORE_LINES] += f" ({count / first:.1%})"
    rows = [f"| | {' | '.join(revisions)} |", "|---" * (len(revisions) + 1) + "|"]
    rows += [f"| {name} | {' | '.join(column[name] for column in columns)} |" for name in columns[0]]
    cores = [", ".join(f"`{part}`" for part in core.split()) for core in CORE]
    growth = "\n".join(_growth(revisions, subjects))
    return HEAD.format(old=cores[0], new=cores[1]) + "\n".join(rows) + f"\n\n## Lines by subject\n\n{growth}\n"


if __name__ == "__main__":
    named = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, check=True, stdout=subprocess.PIPE)  # noqa: S607
    PAGE.write_text(page(sys.argv[1:] or [VERSION_1, named.stdout.decode().strip()]), "utf-8")
