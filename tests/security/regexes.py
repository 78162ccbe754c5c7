"""Finds every regular expression of the package and times each on strings that may make it slow.

Patterns are found in two ways: compiled ones in the modules' variables after importing every module, and literals in
calls such as `re.sub(r"…", …)` by reading the source. Each is run with the methods that the source uses on it.
"""

import ast
import importlib
import pkgutil
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from re import _constants as codes
from re import _parser as sre_parser
from types import FrameType, ModuleType
from typing import Any

import chapterverse

SOURCE = Path(chapterverse.__file__).parent
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
LONG = 64 * 1024
SHORT = 4 * 1024


@dataclass(frozen=True)
class Found:
    """A pattern, where it is defined, and the methods that are called on it."""

    where: str
    pattern: "re.Pattern[Any]"
    methods: frozenset[str]


@dataclass
class Uses:
    """The methods that the source calls on each name, and the literal patterns in calls of `re`."""

    methods: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # by module and name
    literals: list[tuple[str, str, int, str]] = field(default_factory=list)  # where, pattern, flags, method
    passed: set[tuple[str, str]] = field(default_factory=set)  # names passed on, so that any method may be called

    def of(self, module: str, name: str) -> frozenset[str]:
        """The methods called on a variable; all methods if that is unknown."""
        keys = [(module, name)] if name.startswith("_") else [key for key in self.methods if key[1] == name]
        passed_on = [key for key in self.passed if key[1] == name and (key[0] == module or not name.startswith("_"))]
        used = set().union(*(self.methods.get(key, set()) for key in keys))
        return frozenset(METHODS if passed_on or not used else used)


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages([str(SOURCE)], "chapterverse."):
        if not info.name.endswith("__main__"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield importlib.import_module(info.name)


def every_pattern() -> list[Found]:
    """All patterns of the package."""
    uses = read_source()
    found: dict[tuple[str | bytes, int], Found] = {}
    for module in modules():
        for name, value in vars(module).items():
            for pattern in _patterns(value):
                _add(found, Found(f"{module.__name__}.{name}", pattern, uses.of(module.__name__, name)))
    for where, text, flags, method in uses.literals:
        _add(found, Found(where, re.compile(text, flags), frozenset((method,))))
    return sorted(found.values(), key=lambda one: one.where)


def _add(found: dict[tuple[str | bytes, int], Found], one: Found) -> None:
    key = (one.pattern.pattern, one.pattern.flags)
    before = found.get(key)
    methods = one.methods | before.methods if before else one.methods
    found[key] = Found(before.where if before else one.where, one.pattern, methods)


def _patterns(value: object, depth: int = 0) -> Iterator["re.Pattern[Any]"]:
    """The patterns in a value, also in containers and in fields of the package's own objects."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for inner in value.values():
            yield from _patterns(inner, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _patterns(inner, depth + 1)
    elif depth < 4 and isinstance(value, type) and value.__module__.startswith("chapterverse"):
        for inner in vars(value).values():
            yield from _patterns(inner, 4)
    elif depth < 4 and type(value).__module__.startswith("chapterverse"):
        for name in (*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())):
            yield from _patterns(getattr(value, name, None), depth + 1)


def read_source() -> Uses:
    uses = Uses()
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        module = ".".join(("chapterverse", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
                uses.methods.setdefault((module, node.value.id), set()).add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in owners:
                uses.passed.add((module, node.id))
            elif isinstance(node, ast.Call):
                _literal(node, path, uses)
    return uses


def _literal(node: ast.Call, path: Path, uses: Uses) -> None:
    function = node.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"):
        return
    if function.attr not in METHODS or not node.args:
        return
    given = node.args[0]
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        flags = 0
        for keyword in [*node.keywords, *(ast.keyword("flags", arg) for arg in node.args[2:])]:
            for part in ast.walk(keyword.value):
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "re":
                    flag = getattr(re, part.attr)
                    flags |= int(flag) if isinstance(flag, re.RegexFlag) else 0
        uses.literals.append((f"{path.relative_to(SOURCE)}:{node.lineno}", given.value, flags, function.attr))


# ── slow strings ─────────────────────────────────────────────────────────────────────────────────────────────────────

_COMMON = [" ", "\n", "\t", "a", "A", "1", ".", "-", "_", "*", "`", "[", "(", "<", '"', "#", "|", ":", "é", "中", "'"]
_PAIRS = ["a ", " a", "\n ", " \n", "a\n", "\n\n", "a.", ". ", "a-", "1.", "<a", "[a", "](", "a b ", "&a", "- ", "| "]


def attacks(pattern: "re.Pattern[Any]") -> Iterator[tuple[str, str, str]]:
    """Prefix, repeated part and suffix of strings that may be slow: common ones, and some derived from the pattern."""
    prefixes, pumps = _read_pattern(pattern)
    for pump in dict.fromkeys([*pumps, *_COMMON, *_PAIRS]):
        for prefix in dict.fromkeys(["", *prefixes[:3]]):
            yield prefix, pump, "\x00"
    for pump in pumps:
        for prefix in prefixes[:2]:
            yield prefix, pump, "x\ny"


def _read_pattern(pattern: "re.Pattern[Any]") -> tuple[list[str], list[str]]:  # noqa: C901
    """Finds the shortest strings that match the part before each repeat of a pattern, and the repeated part."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    prefixes: dict[str, None] = {}
    pumps: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = sre_parser.parse(text, pattern.flags & (re.VERBOSE | re.IGNORECASE | re.DOTALL))

    def walk(nodes: Any, before: str) -> str:
        for code, value in nodes:
            if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
                least, most, inside = value
                if most == codes.MAXREPEAT or most > 200:
                    prefixes[before[-60:]] = None
                    for sample in _samples(inside):
                        pumps[sample] = None
                walk(inside, before)
                before += _shortest(inside) * min(least, 3)
            elif code is codes.SUBPATTERN:
                before = walk(value[3], before)
            elif code is codes.BRANCH:
                ends = [walk(branch, before) for branch in value[1]]
                before = ends[0]
            elif code is codes.ATOMIC_GROUP:
                before = walk(value, before)
            elif code not in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
                before += _shortest([(code, value)])
            elif code in (codes.ASSERT, codes.ASSERT_NOT):
                walk(value[1], before)
        return before

    whole = walk(parsed, "")
    if whole:
        pumps[whole[:60]] = None
        for size in range(1, min(len(whole), 6)):  # a repeated beginning without the end
            pumps[whole[:size]] = None
    return [one for one in prefixes if one][:6], [one for one in pumps if one][:24]


def _samples(nodes: Any) -> Iterator[str]:
    yield _shortest(nodes)
    for code, value in nodes:
        if code is codes.IN:
            yield from list(_members(value))[:8]
        elif code is codes.SUBPATTERN:
            yield from _samples(value[3])
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield _shortest(branch)
        elif code in (codes.ANY, codes.NOT_LITERAL):
            yield from ("a", " ")


def _shortest(nodes: Any) -> str:
    out = ""
    for code, value in nodes:
        if code is codes.LITERAL:
            out += chr(value)
        elif code is codes.NOT_LITERAL:
            out += "a" if value != ord("a") else "b"
        elif code is codes.ANY:
            out += "a"
        elif code is codes.IN:
            out += next(iter(_members(value)), "a")
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            out += _shortest(value[2]) * min(value[0], 5)
        elif code is codes.SUBPATTERN:
            out += _shortest(value[3])
        elif code is codes.BRANCH:
            out += _shortest(value[1][0])
        elif code is codes.ATOMIC_GROUP:
            out += _shortest(value)
    return out


_CATEGORIES = {
    codes.CATEGORY_SPACE: " \n\t",
    codes.CATEGORY_NOT_SPACE: "a.",
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_NOT_DIGIT: "a ",
    codes.CATEGORY_WORD: "a1_",
    codes.CATEGORY_NOT_WORD: " .-",
}


def _members(items: Any) -> Iterator[str]:
    """Some characters that a character class matches."""
    if items and items[0][0] is codes.NEGATE:
        excluded = set(_members(items[1:]))
        yield from (one for one in "a 1.-\n\"'([<" if one not in excluded)
        return
    for code, value in items:
        if code is codes.LITERAL:
            yield chr(value)
        elif code is codes.RANGE:
            yield chr(value[0])
        elif code is codes.CATEGORY:
            yield from _CATEGORIES.get(value, "a")


# ── timing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class TooSlow(Exception):
    """Raised when a run exceeds its time."""


def seconds(found: Found, method: str, text: str, most: float) -> float:
    """CPU time of one run; `inf` if it was stopped after `most` seconds."""
    given: Any = text if isinstance(found.pattern.pattern, str) else text.encode("utf-8", "replace")
    run: Callable[[], object] = _runner(found.pattern, method, given)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    started = time.thread_time()
    try:
        run()
        return time.thread_time() - started
    except TooSlow:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _runner(pattern: "re.Pattern[Any]", method: str, text: Any) -> Callable[[], object]:
    empty = text[:0]
    if method in ("sub", "subn"):
        return lambda: pattern.sub(empty, text)
    if method == "finditer":
        return lambda: sum(1 for _ in pattern.finditer(text))
    return lambda: getattr(pattern, method)(text)


def _tries(found: Found, method: str, text: str, budget: float) -> Iterator[float]:
    return (seconds(found, method, text, budget) for _ in range(3))


def slowest(found: Found, budget: float, short_budget: float) -> str | None:
    """The first attack that exceeds the budget with a string of full length, or None."""
    methods = _kinds(found.methods)
    for prefix, pump, suffix in attacks(found.pattern):
        short = (prefix + pump * (SHORT // len(pump) + 1))[:SHORT] + suffix
        for method in methods:
            if seconds(found, method, short, 10 * short_budget) <= short_budget:
                continue
            long = (prefix + pump * (LONG // len(pump) + 1))[:LONG] + suffix
            # The best of three runs counts, because other processes may share the core.
            taken = next((one for one in _tries(found, method, long, budget) if one <= budget), None)
            if taken is None:
                return f"{method}({prefix!r} + {pump!r} * n + {suffix!r})"
    return None


def _kinds(methods: frozenset[str]) -> list[str]:
    """One method of each kind, because methods of a kind do the same work."""
    kinds: list[str] = [method for method in ("match", "fullmatch") if method in methods]
    if methods - {"match", "fullmatch"}:
        kinds.append("sub" if methods & {"sub", "subn", "split", "findall", "finditer"} else "search")
    return kinds
