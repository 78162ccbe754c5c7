"""The AsciiDoc preprocessor: resolves includes, conditions and attributes.

Only files inside of the book's folder are included. Includes of other files, of web addresses, and of files that are
already open are left out.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from chapterverse.ingestion.document import Unreadable
from chapterverse.ingestion.inclusion import refuse
from chapterverse.ingestion.limits import whole_number

MAX_DEPTH: Final = 30  # of files that include each other
MAX_CHARS: Final = 20_000_000  # of a page with everything that it includes
MAX_VALUE: Final = 20_000  # characters of an attribute's value
_VERBATIM = re.compile(r"-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}(?=[\w+#-]*$)")
_DIRECTIVE = re.compile(r"(\\?)(include|ifdef|ifndef|ifeval|endif)::((?:\{[^}]{0,100}\}|[^\s\[])*+)\[(.*)\]")
_INCLUDE = re.compile(r"(\\?)include::([^\s\[](?:[^\[]*[^\s\[])?)\[(.*)\]")
ENTRY = re.compile(r":(!?[\w][\w-]*+!?):(?:[ \t]++(.*))?")
_REFERENCE = re.compile(r"(\\?)\{([\w][\w-]*)\}")
_TAG = re.compile(r"\b(tag|end)::([^\s\[]{1,300}+)\[\](?=$|[\s*\-/#%)])")
_EVALUATION = re.compile(r"(.+?)(?<![ \t])[ \t]*+(==|!=|<=|>=|<|>)[ \t]*+([\s\S]+)")
_RESOURCE = re.compile(
    r"(?:[^@:/$]*+@)?(?:(?:([\w.-]*):)?([\w.-]*):)?(?:(partial|example|page|attachment|image)\$)?([^:]+)"
)
_FOLDERS = {
    "partial": "partials",
    "example": "examples",
    "page": "pages",
    "attachment": "attachments",
    "image": "images",
}
_CHARACTERS = {"nbsp": "\xa0", "zwsp": "\u200b", "wj": "\u2060", "sp": " ", "empty": "", "blank": "", "amp": "&"}
_CHARACTERS |= {"lt": "<", "gt": ">", "plus": "+", "asterisk": "*", "tilde": "~", "caret": "^", "vbar": "|"}
_CHARACTERS |= {"startsb": "[", "endsb": "]", "backslash": "\\", "backtick": "`", "two-colons": "::", "cpp": "C++"}
_CHARACTERS |= {"two-semicolons": ";;", "deg": "°", "apos": "'", "quot": '"', "lsquo": "‘", "rsquo": "’", "ldquo": "“"}
_CHARACTERS |= {"rdquo": "”", "pp": "++"}
_GIVEN = {"asciidoctor": "", "asciidoctor-version": "2.0.23", "backend": "html5", "backend-html5": "", "idprefix": "_"}
_GIVEN |= {"basebackend": "html", "basebackend-html": "", "idseparator": "_", "outfilesuffix": ".html", "sectids": ""}
_GIVEN |= {"basebackend-html-doctype-article": "", "backend-html5-doctype-article": "", "filetype": "html"}

Fetch = Callable[[str], str | None]  # the text of a file by its path in the book; None if there is none


class Attributes(dict[str, str]):
    """The attributes of a document at the current line."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        super().__init__(_GIVEN if given is None else given)

    def entry(self, line: str) -> bool:
        """Set or unset an attribute if the line is an attribute entry; returns whether it is."""
        if not (found := ENTRY.fullmatch(line)):
            return False
        self.put(found[1], found[2] or "")
        return True

    def put(self, name: str, value: str) -> None:
        """Set an attribute, or unset it if its name has an exclamation mark."""
        key = name.strip("!").lower()
        if "!" in name:
            self.pop(key, None)
            return
        if passed := re.fullmatch(r"pass:([a-z,]*)\[(.*)\]", value, re.DOTALL):
            value = self.filled(passed[2]) if "a" in passed[1] else passed[2]
        else:
            value = self.filled(value)
        if key == "leveloffset":
            value = str(_level(value, self.get(key, "0")))
        self[key] = value[:MAX_VALUE]

    def filled(self, text: str) -> str:
        """Replace attribute references by their values; unknown ones are kept."""
        if "{" not in text:
            return text
        room = MAX_VALUE + 4 * len(text)

        def value(match: re.Match[str]) -> str:
            nonlocal room
            if match[1]:
                return f"{{{match[2]}}}"
            name = match[2].lower()
            found = self.get(name, _CHARACTERS.get(name, match[0]))
            room -= len(found)
            return found if room > 0 else match[0]

        return _REFERENCE.sub(value, text)

    @property
    def offset(self) -> int:
        """The current `leveloffset`."""
        return _level(self.get("leveloffset", "0"), "0")


def _underlines(line: str, above: str, before: str) -> bool:
    """Whether a line underlines the line above it as a heading."""
    starts_block = not before or before.startswith(("[", ".", "//", ":")) or before.endswith("]")
    return (
        starts_block
        and not above.startswith(("[", "."))
        and abs(len(line) - len(above)) <= 1
        and re.search(r"\w", above) is not None
    )


def _level(value: str, before: str) -> int:
    number = re.fullmatch(r"([+-]?)(\d)", value.strip())
    if not number:
        return 0
    given = int(f"{number[1]}{number[2]}")
    return given + int(before) if number[1] and re.fullmatch(r"-?\d+", before) else given


@dataclass(slots=True)
class _Condition:
    holds: bool
    name: str


@dataclass(slots=True)
class AsciidocSource:
    """Reads one page. `keep_out`: whether an included file is a separate page, whose text is left out here."""

    fetch: Fetch
    attributes: Attributes = field(default_factory=Attributes)
    keep_out: Callable[[str], bool] = lambda path: False
    met: Callable[[str, Attributes], None] = lambda path, attributes: None  # called for each page that is left out
    components: Mapping[str, str] = field(default_factory=dict)  # Antora: folder → name
    _conditions: list[_Condition] = field(default_factory=list)
    _room: int = MAX_CHARS
    _verbatim: str = ""
    _above: tuple[str, str] = ("", "")  # the two lines before this one
    _value: tuple[str, list[str]] | None = None  # name and lines of an attribute that continues on the next line

    def lines(self, text: str, path: str) -> list[str]:
        """The lines of a page with its includes, without those whose condition is false."""
        return list(self._lines(_without_front_matter(text).split("\n"), (path,)))

    def _lines(self, lines: list[str], files: tuple[str, ...]) -> Iterator[str]:
        open_before = len(self._conditions)
        for raw in lines:
            line = raw.rstrip()
            self._room -= len(line) + 1
            if self._room < 0:
                raise Unreadable("its includes make it too long")
            directive = "::" in line and line.endswith("]") and _directive(line)
            if directive and not self._verbatim.startswith("/"):
                yield from self._directive(directive, line, files)
            elif all(condition.holds for condition in self._conditions):
                self._follow(line)
                yield line
        del self._conditions[open_before:]

    def _follow(self, line: str) -> None:
        """Track attributes, because conditions and paths depend on them, and verbatim blocks, which set none."""
        before, above = self._above
        self._above = (above, line)
        if self._value:
            name, parts = self._value
            more = line.endswith(" \\")
            parts.append(line[:-2].strip() if more else line.strip())
            if not more:
                self._value = None
                self.attributes.put(name, " ".join(parts))
        elif self._verbatim:
            if line == self._verbatim:
                self._verbatim = ""
        elif opened := _VERBATIM.match(line):
            if (opened[0] == line or opened[0].startswith("`")) and not _underlines(line, above, before):
                self._verbatim = opened[0]
        elif line.startswith(":") and (entry := ENTRY.fullmatch(line)):
            if (entry[2] or "").endswith(" \\"):
                self._value = (entry[1], [entry[2][:-2].strip()])
            else:
                self.attributes.put(entry[1], entry[2] or "")

    def _directive(self, found: re.Match[str], line: str, files: tuple[str, ...]) -> Iterator[str]:
        holds = all(condition.holds for condition in self._conditions)
        if found[1]:
            if holds:
                yield line[1:]
            return
        if found.re is _INCLUDE:
            if holds:
                yield from self._include(found[2], found[3], files)
            return
        kind, names, text = found[2], found[3], found[4]
        if kind == "endif":
            if self._conditions:
                self._conditions.pop()
        elif kind == "ifeval":
            self._conditions.append(_Condition(holds and self._evaluates(text), ""))
        elif text:
            if not (holds and self._is_set(kind, names)):
                return
            inner = _directive(text)
            if inner and inner.re is _INCLUDE:
                yield from self._directive(inner, text, files)
            else:
                self._follow(self.attributes.filled(text) if text.startswith(":") else text)
                yield text
        else:
            self._conditions.append(_Condition(holds and self._is_set(kind, names), names))

    def _is_set(self, kind: str, names: str) -> bool:
        every = "+" in names
        one_is = [name.lower() in self.attributes for name in re.split(r"[,+]", names) if name]
        if kind == "ifdef":
            return all(one_is) if every else any(one_is)
        return not all(one_is) if every else not any(one_is)

    def _evaluates(self, expression: str) -> bool:
        if not (found := _EVALUATION.fullmatch(expression.strip())):
            return False
        left, right = (self._operand(found[1]), self._operand(found[3]))
        match found[2]:
            case "==":
                return left == right
            case "!=":
                return left != right
        if isinstance(left, str) and isinstance(right, str):
            return _compares(found[2], (left > right) - (left < right))
        if isinstance(left, float) and isinstance(right, float):
            return _compares(found[2], (left > right) - (left < right))
        return False

    def _operand(self, text: str) -> str | float | bool | None:
        text = text.strip()
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            return self.attributes.filled(text[1:-1])
        text = _REFERENCE.sub("", self.attributes.filled(text)).strip()
        if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?", text):
            return float(text)
        return {"true": True, "false": False, "": None}.get(text, text)

    def _include(self, target: str, options: str, files: tuple[str, ...]) -> Iterator[str]:
        target = self.attributes.filled(target)
        path = resolve(target, files[-1], self.components)
        if not path:
            refuse(target)
        if not path or path in files or len(files) > MAX_DEPTH:
            return
        given = _named(self.attributes.filled(options))
        partly = any(name in given for name in ("tag", "tags", "lines"))
        if not partly and self.keep_out(path):
            offset = self.attributes.get("leveloffset")
            if "leveloffset" in given:
                self.attributes.put("leveloffset", given["leveloffset"])
            self.met(path, self.attributes)
            self._restore(offset)
            return
        text = self.fetch(path)
        if text is None:
            return
        lines = text.removesuffix("\n").split("\n")
        if "lines" in given:
            lines = _picked(lines, given["lines"])
        elif "tag" in given or "tags" in given:
            lines = _tagged(lines, given.get("tag") or given.get("tags") or "")
        if "indent" in given:
            lines = reindented(lines, given["indent"])
        if "leveloffset" not in given:
            yield from self._lines(lines, (*files, path))
            return
        offset = self.attributes.get("leveloffset")
        self.attributes.put("leveloffset", given["leveloffset"])
        yield from ("", f":leveloffset: {self.attributes['leveloffset']}", "")
        yield from self._lines(lines, (*files, path))
        self._restore(offset)
        yield from ("", f":leveloffset: {offset}" if offset is not None else ":leveloffset!:", "")

    def _restore(self, offset: str | None) -> None:
        if offset is None:
            self.attributes.pop("leveloffset", None)
        else:
            self.attributes["leveloffset"] = offset


def resolve(target: str, from_path: str, components: Mapping[str, str] | None = None) -> str:
    """The target of an include or link as a path in the book; empty if it is outside of the book."""
    if re.match(r"[a-zA-Z][a-zA-Z\d+.-]+://", target) or target.startswith(("/", "\\")):
        return ""
    if (resource := _RESOURCE.fullmatch(target)) and resource[3]:
        return antora_path(target, from_path, components or {}, resource[3])
    parts: list[str] = list(PurePosixPath(from_path).parent.parts)
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def antora_path(target: str, from_path: str, components: Mapping[str, str], family: str) -> str:
    """The path of the file that `version@component:module:family$name` names; all but the name may be absent. Empty if
    `from_path` is in no module, or if the component is not in the book."""
    parts = PurePosixPath(from_path).parts
    found = _RESOURCE.fullmatch(target)
    if not found or "modules" not in parts[:-2]:
        return ""
    component, module, given, name = found.groups()
    at = len(parts) - 1 - parts[::-1].index("modules")
    folder: str | None = "".join(f"{part}/" for part in parts[:at])
    if component and components.get(folder or "") != component:
        folder = next((other for other, named in components.items() if named == component), None)
    module = parts[at + 1] if module is None else module or "ROOT"
    path = posixpath.normpath(f"{folder}modules/{module}/{_FOLDERS[given or family]}/{name}")
    return "" if folder is None or path.startswith("..") else path


def _directive(line: str) -> re.Match[str] | None:
    return _INCLUDE.fullmatch(line) or _DIRECTIVE.fullmatch(line)


def _compares(operator: str, sign: int) -> bool:
    return (sign < 0 and "<" in operator) or (sign > 0 and ">" in operator) or (sign == 0 and "=" in operator)


def _named(options: str) -> dict[str, str]:
    found = re.findall(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^,\"']*))", options)
    return {name: (one or two or three).strip() for name, one, two, three in found}


def _picked(lines: list[str], wanted: str) -> list[str]:
    """The lines with the numbers in `1..5;8;10..-1`."""
    numbers: set[int] = set()
    for part in re.split(r"[;,]", wanted):
        first, dots, last = part.strip().partition("..")
        begin = whole_number(first, len(lines) + 1)
        end = whole_number(last, len(lines)) if dots else begin  # a negative number stands for the last line
        numbers.update(range(begin, min(end, len(lines)) + 1))
    return [line for number, line in enumerate(lines, 1) if number in numbers]


def _tagged(lines: list[str], wanted: str) -> list[str]:
    """The lines between `tag::name[]` and `end::name[]`."""
    names = {
        tag.strip().lstrip("!"): not tag.strip().startswith("!") for tag in re.split(r"[;,]", wanted) if tag.strip()
    }
    rest = names.pop("**", None)  # whether to keep lines outside of the named tags
    any_tag = names.pop("*", None)
    if rest is None:
        rest = not any(names.values()) and not any_tag if names or any_tag is not None else True
        rest = rest and any_tag is not True
    stack: list[tuple[str, bool]] = []
    chosen = rest
    kept: list[str] = []
    for line in lines:
        mark = _TAG.search(line) if "::" in line else None
        if not mark:
            if chosen:
                kept.append(line)
        elif mark[1] == "tag":
            stack.append((mark[2], chosen))
            chosen = names.get(mark[2], chosen if any_tag is None else any_tag)
        elif any(name == mark[2] for name, _ in stack):
            while stack:
                name, chosen = stack.pop()
                if name == mark[2]:
                    break
    return kept


def reindented(lines: Sequence[str], indent: str = "") -> list[str]:
    """Replace the indent that all lines share by this many spaces, at most 40."""
    wanted = whole_number(indent, 0)
    own = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [f"{' ' * min(wanted, 40)}{line[own:]}" if line.strip() else "" for line in lines]


def _without_front_matter(text: str) -> str:
    found = re.match(r"---\n[\w-]+:(?:[^\n]*\n){1,200}?---\n", text)
    return text[found.end() :] if found else text
