"""Checks that generated pages and committed results match the current code: `python tools/pages.py`, in `make check`.

A generated page contains the digest of the code that its figures depend on: every module that is reached by imports
from the roots, except those that cannot change the figures (`Generated.cut`), without comments and docstrings, and the
data files in the same folders. See `docs/decisions/0033-truthful-pages.md` for the reasons.
"""

import ast
import hashlib
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"
CODE: Final = re.compile(r"\bcode ([0-9a-f]{12})\b")
NO_FIGURES: Final = "There are no figures for the code as it is."
# package → its parent folder
_OURS: Final = {"chapterverse": ROOT / "src", "bench": ROOT, "tests": ROOT, "tools": ROOT}


@dataclass(frozen=True, slots=True)
class Generated:
    """A page that a command generates."""

    page: str
    made_by: str
    roots: tuple[str, ...]  # modules, or packages with all their modules, that produce the figures
    cut: tuple[str, ...]  # modules, packages and folders of data that cannot change them


SCOREBOARD: Final = Generated(
    "docs/SCOREBOARD.md",
    "make scoreboard",
    roots=("bench.scoreboard", "bench.sets"),
    cut=(
        *(
            "chapterverse.conversations.store",
            "chapterverse.conversations.postgres",
            "chapterverse.conversations.migrations",
            "chapterverse.health",
        ),
        *("chapterverse.index.server", "chapterverse.index.server_writer", "chapterverse.index.server_errors"),
        *("chapterverse.embeddings.cohere", "chapterverse.embeddings.openai", "chapterverse.embeddings.remote"),
        *("chapterverse.errors", "chapterverse.web"),
        *("bench.results", "bench.recorded", "bench.llm", "tools"),
    ),
)
RELIABILITY: Final = Generated(
    "docs/RELIABILITY.md",
    "make reliability",
    roots=("tests.faults", "chapterverse.main"),
    cut=(
        *("chapterverse.ingestion.readers", "chapterverse.evaluation", "chapterverse.evidence", "chapterverse.trained"),
        *(
            "chapterverse.language",
            "chapterverse.units",
            "chapterverse.calibration",
            "chapterverse.answering.confidence",
        ),
        *("chapterverse.writing.cutting", "chapterverse.writing.excerpt", "chapterverse.writing.prompts"),
        *(
            "chapterverse.terminal",
            "chapterverse.web",
            "chapterverse.api.openapi.docs",
            "chapterverse.api.openapi.description",
        ),
        *("chapterverse.api.openapi.examples", "tests.snapshots", "bench", "tools"),
    ),
)
PAGES: Final = (SCOREBOARD, RELIABILITY)


def code_digest(page: Generated) -> str:
    """A digest of the code that a page depends on."""
    digest = hashlib.sha256()
    files = sorted(_closure(page))
    for file in files:
        digest.update(f"{file.relative_to(ROOT)}\0{_code(file)}\0".encode())
    for file in sorted(data for folder in {file.parent for file in files} for data in _data(folder, page.cut)):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def faults() -> Iterator[str]:
    """Each mismatch, as a sentence."""
    for page in PAGES:
        path = ROOT / page.page
        head = "\n".join(path.read_text("utf-8").splitlines()[:12]) if path.exists() else NO_FIGURES
        if NO_FIGURES in head:
            continue
        made_of = CODE.search(head)
        if made_of is None or made_of[1] != code_digest(page):
            yield f"{page.page} is of other code than this. Make it again: {page.made_by}; or: {_RETIRE} {page.page}"
        elif "-dirty" in head:
            yield f"{page.page} was made from a tree that differs from its commit. Commit, then: {page.made_by}"
    names = [path.stem for path in sorted(RESULTS.glob("*.json"))]
    for name in names:
        if name.endswith("-dirty"):
            yield f"bench/results/{name}.json was measured on a tree that differs from its commit. Delete it."
    benches = Counter(name.removesuffix("-dirty").rpartition("-")[0] for name in names)
    for bench, count in benches.items():
        if count > 1:
            yield f"bench/results has {count} results of {bench}. Delete all but the newest."


_RETIRE: Final = "python tools/pages.py retire"


def retire(name: str) -> None:
    """Remove figures of other code from a page. The page then says where to find them."""
    page = next(page for page in PAGES if page.page == name)
    path = ROOT / name
    title = path.read_text("utf-8").splitlines()[0]
    asked = ["git", "log", "-1", "--format=%h", "--", name]
    last = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    earlier = f"Those of an earlier state: `git show {last}:{name}`."
    path.write_text(f"{title}\n\n{NO_FIGURES} `{page.made_by}` makes them. {earlier}\n", "utf-8")


def _closure(page: Generated) -> set[Path]:
    """The files of all modules that are reached from the roots."""
    reached: dict[Path, str] = {}
    waiting = [module for root in page.roots for module in _modules(root)]
    while waiting:
        name = waiting.pop()
        file = _file(name)
        if file is None or file in reached or _within(name, page.cut):
            continue
        reached[file] = name
        waiting += _imports(file, name)
        waiting += [name.rpartition(".")[0]] * ("." in name)  # importing a module runs its package first
    return set(reached)


def _modules(root: str) -> Iterator[str]:
    """A module, or a package with all its modules."""
    yield root
    file = _file(root)
    if file is not None and file.name == "__init__.py":
        for path in file.parent.rglob("*.py"):
            yield ".".join((root, *path.relative_to(file.parent).with_suffix("").parts)).removesuffix(".__init__")


def _within(name: str, cut: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in cut)


@cache
def _file(name: str) -> Path | None:
    """The file of one of our modules. None for other modules, and for names that are not modules."""
    base = _OURS.get(name.partition(".")[0])
    if base is None:
        return None
    place = base.joinpath(*name.split("."))
    return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()), None)


def _imports(file: Path, name: str) -> list[str]:
    """The names that a module imports, anywhere in it; some of them may not be modules."""
    found: list[str] = []
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            found += [source, *(f"{source}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _file(node.value):
            found.append(node.value)  # a process is started by the name of its module
    return found


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def _code(file: Path) -> str:
    """A module's text without comments, docstrings and empty lines. The text is used because the output of `ast` and
    `tokenize` differs between versions of Python. Equal code has equal text, because it is formatted."""
    text = file.read_text("utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno:
                for row in range(first.lineno - 1, first.end_lineno):
                    lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _data(folder: Path, cut: tuple[str, ...]) -> Iterator[Path]:
    """Data files of a package and of its folders without code: prompts, weights, fitted values."""
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in (".py", ".pyc") and path.name != "py.typed":
            yield path
        elif path.is_dir() and path.name != "__pycache__" and not any(path.rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).parts).removeprefix("src.")
            yield from () if _within(name, cut) else (file for file in path.rglob("*") if file.is_file())


if __name__ == "__main__":
    if sys.argv[1:2] == ["retire"]:
        for one in sys.argv[2:]:
            retire(one)
        sys.exit()
    untrue = list(faults())
    sys.stdout.write("\n".join(untrue or ["Pages and results are of the code as it is."]) + "\n")
    sys.exit(bool(untrue))
