"""Expands includes in Markdown, in the syntax of each generator.

MkDocs: `--8<-- "file:section"`, `{! file !}`, `{* file ln[1:9] *}`. mdBook: `{{#include file:anchor}}`. VitePress:
`<<< @/file#region` and `<!--@include: file-->`. Hugo themes: `{{% include "file" %}}`, `{{< readfile >}}`,
`{{% code_sample %}}`. A file that is missing or refused (`inclusion.py`) is left out.
"""

import re
from collections.abc import Iterator

from chapterverse.ingestion.inclusion import Included, Inclusion
from chapterverse.ingestion.limits import whole_number
from chapterverse.ingestion.readers import frontmatter

INCLUDE = re.compile(r"8<-|\{\{#|\{[*!]|^[ \t]*<<<|@include|\{\{[<%]\s*(?:include|readfile|code_sample)", re.MULTILINE)
_FENCE = re.compile(r"[ \t>]*+(?:[-*+]|\d{1,9}[.)])?[ \t]*+(`{3,}+|~{3,}+)")
_SNIPPET = re.compile(r"""(?P<indent>[ \t]*)(?P<escape>;?)-+8<-+[ \t]+["'](?P<name>[^"']+)["'][ \t]*""")
_SNIPPET_FENCE = re.compile(r"(?P<indent>[ \t]*)-+8<-+[ \t]*")
_SECTION_MARK = re.compile(r"(?<!-)-++8<-++[ \t]*+\[[ \t]*+(start|end)[ \t]*+(?::[ \t]*+([\w-]++))?[ \t]*+\]")
_STAR = re.compile(r"(?P<indent>[ \t]*+)\{\*[ \t]++(?P<name>[^\s{}]{1,300}+)(?P<rest>[^{}]*)\*\}[ \t]*+")
_BANG = re.compile(r"(?P<indent>[ \t]*+)\{!(?:>|[ \t])?[ \t]*+(?P<name>[^\s!|{}]++)[^{}]*!\}[ \t]*+")
_MUSTACHE = re.compile(r"(\\?)\{\{#(include|rustdoc_include|playground|title)\s++([^{}\n]++)\}\}")
_ARROWS = re.compile(
    r"(?P<indent>[ \t]*+)<<<[ \t]*+(?P<name>[^\s#{\[]++)(?:#(?P<part>[\w-]++))?[ \t]*+(?:\{(?P<meta>[^{}]*+)\})?"
    r"[ \t]*+(?:\[(?P<title>[^\]]*+)\])?[ \t]*+"
)
_COMMENT = re.compile(
    r"(?P<indent>[ \t]*)<!--[ \t]*@include:[ \t]*(?P<name>[^\s#{]+?)(?:#(?P<part>[\w-]+))?"
    r"(?:\{(?P<meta>[^{}]*)\})?[ \t]*-->[ \t]*"
)
_SHORTCODE = re.compile(
    r"(?P<indent>[ \t]*+)\{\{[<%]\s*+(?P<kind>include|readfile|code_sample)\s++"
    r"(?P<rest>[^{}]{1,500}?)\s{0,50}/?[>%]\}\}[ \t]*+"
)
_ARGUMENT = re.compile(r"""(?:(\w+)\s*=\s*)?["'`]?([^"'`\s=]+)["'`]?""")
_ANCHOR = re.compile(r"ANCHOR(_END)?:[ \t]*([\w-]+)")
_REGION = re.compile(  # in a comment; `#Region` of Visual Basic needs none
    r"(?:#(?=R|E)|(?:#pragma|//|/\*|<!--|--|::|\(\*|[#';%]|REM\b|rem\b)[ \t]*+#?(?=r|e))"
    r"([Ee]nd ?)?[Rr]egion(?:[ \t]++([\w-]++))?[ \t]*+(?:\*/|-->|\*\))?"
)
_LINES = re.compile(r"ln\[([^\[\]]*+)\]")
_LANGUAGES = {
    ".py": "python", ".js": "js", ".ts": "ts", ".jsx": "jsx", ".tsx": "tsx", ".rs": "rust", ".go": "go", ".sh": "bash",
    ".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".json": "json", ".html": "html", ".css": "css", ".vue": "vue",
    ".java": "java", ".kt": "kotlin", ".rb": "ruby", ".c": "c", ".cpp": "cpp", ".h": "c", ".ini": "ini", ".md": "md",
}  # fmt: skip
_PROSE = (".md", ".mdx", ".markdown", ".html")
_MAX_LINE = 2_000  # characters; includes in longer lines are not expanded
_HUGO_ROOTS = ("includes", "examples", "en/examples")


def expand(text: str, inclusion: Inclusion) -> str:
    """Replace every include by its text."""
    if not INCLUDE.search(text):
        return text
    return "\n".join(_Expansion(inclusion).lines(text))


class _Expansion:
    def __init__(self, inclusion: Inclusion) -> None:
        self._inclusion = inclusion

    def lines(self, text: str) -> Iterator[str]:
        fence, depth = "", 0
        block: str | None = None  # indent of an open block of snippet names
        for line in text.split("\n"):
            if (opened := _FENCE.match(line)) and not (opened[1][0] == "`" and "`" in line[opened.end() :]):
                if not fence:
                    fence, depth = opened[1], opened.start(1)
                elif opened[1].startswith(fence) and not line.strip("`~> \t") and opened.start(1) < depth + 4:
                    fence = ""
            if len(line) > _MAX_LINE:
                yield line
            elif mark := _SNIPPET_FENCE.fullmatch(line):
                block = mark["indent"] if block is None else None
            elif block is not None:
                if line.strip() and not line.lstrip().startswith((";", "#")):
                    yield from self._snippet(line.strip(), block)
            else:
                yield from self._line(line, bool(fence))

    def _line(self, line: str, in_code: bool) -> Iterator[str]:
        if found := _SNIPPET.fullmatch(line):
            if found["escape"]:
                yield line.replace(";", "", 1)
            else:
                yield from self._snippet(found["name"], found["indent"])
        elif not _SECTION_MARK.search(line):
            if not in_code:
                expanded = self._outside_code(line)
                if expanded is not None:
                    yield from expanded
                    return
            elif found := _BANG.fullmatch(line):
                yield from self._file(found["name"], found["indent"], raw=True)
                return
            yield from self._mustaches(line, in_code)

    def _outside_code(self, line: str) -> Iterator[str] | None:
        if found := _STAR.fullmatch(line):
            lines = _LINES.search(found["rest"])
            return self._program(found["name"], found["indent"], lines=lines[1] if lines else "")
        if found := _BANG.fullmatch(line):
            return self._file(found["name"], found["indent"])
        if found := _ARROWS.fullmatch(line):
            meta = re.search(r"[a-z][\w+-]*", found["meta"] or "")
            return self._program(
                found["name"], found["indent"], found["part"] or "", meta[0] if meta else "", found["title"] or ""
            )
        if found := _COMMENT.fullmatch(line):
            return self._file(found["name"], found["indent"], found["part"] or "", found["meta"] or "")
        if found := _SHORTCODE.fullmatch(line):
            return self._shortcode(found)
        return None

    def _shortcode(self, found: re.Match[str]) -> Iterator[str]:
        given = {name or "file": value for name, value in _ARGUMENT.findall(found["rest"])}
        name = given.get("file", "")
        if found["kind"] == "code_sample" or given.get("code") == "true" or not name.endswith(_PROSE):
            return self._program(name, found["indent"], language=given.get("lang", ""), title=name)
        return self._file(name, found["indent"])

    def _snippet(self, name: str, indent: str) -> Iterator[str]:
        name, _, part = name.partition(":") if not name.startswith(("http:", "https:")) else ("", "", "")
        yield from self._file(name, indent, part, raw=True)

    def _mustaches(self, line: str, in_code: bool) -> Iterator[str]:
        made: list[str] = []
        place = 0
        for found in _MUSTACHE.finditer(line):
            made.append(line[place : found.start()])
            place = found.end()
            if found[1]:
                made.append(found[0][1:])
            elif found[2] != "title":
                name, _, part = found[3].strip().partition(":")
                lines = list(self._file((name.split() or [""])[0], "", part, raw=in_code))
                made.append("\n".join(lines if in_code or found[2] != "playground" else ["```rust", *lines, "```"]))
        text = "".join(made) + line[place:]
        if text or not made:
            yield text

    def _program(
        self, name: str, indent: str, part: str = "", language: str = "", title: str = "", lines: str = ""
    ) -> Iterator[str]:
        if (included := self._open(name)) is None:
            return
        text = _excerpt(included.text, lines) if lines else "\n".join(_selected(included.text, part))
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", text) or [""]))
        language = language or _LANGUAGES.get(included.path.suffix.lower(), "")
        caption = f' title="{title}"' if title and '"' not in title else ""
        for line in (f"{fence}{language}{caption}", *text.rstrip("\n").split("\n"), fence):
            yield f"{indent}{line}"

    def _file(self, name: str, indent: str, part: str = "", meta: str = "", raw: bool = False) -> Iterator[str]:
        if (included := self._open(name)) is None:
            return
        text = "\n".join(_selected(included.text, part or meta))
        if not raw:
            text = frontmatter.split(text)[1]
        if INCLUDE.search(text):
            with self._inclusion.inside(included):
                text = "\n".join(self.lines(text))
        for line in text.strip("\n").split("\n"):
            yield f"{indent}{line}" if line else ""

    def _open(self, name: str) -> Included | None:
        if name.startswith("@/"):
            return self._inclusion.read(name[1:])
        return self._inclusion.read(name, _HUGO_ROOTS)


def _selected(text: str, part: str) -> list[str]:
    """The lines of a named section (`part`), of ranges of lines (`3:7`), or all lines without section marks."""
    lines = text.split("\n")
    if part and re.fullmatch(r"[\d,:\s-]+", part):
        return [line for first, last in _ranges(part, len(lines)) for line in lines[first - 1 : last]]
    if part:
        return _section(lines, part)
    return [line for line in lines if not _mark_of(line)]


def _excerpt(text: str, lines: str) -> str:
    """The text of ranges of lines. Gaps are marked in the same way as by `markdown-include-variants`."""
    every = text.rstrip("\n").split("\n")
    ranges = list(_ranges(lines, len(every)))
    pieces = ["\n".join(every[first - 1 : last]).strip("\n") for first, last in ranges]
    before = "# Code above omitted 👆\n\n" if ranges[0][0] > 1 else ""
    after = "\n\n# Code below omitted 👇" if ranges[-1][1] < len(every) else ""
    return before + "\n\n# Code here omitted 👈\n\n".join(pieces) + after


def _ranges(spec: str, count: int) -> Iterator[tuple[int, int]]:
    """The first and last lines of ranges such as `3`, `3:7`, `:7`, `3-` or `1-2,5`."""
    for piece in spec.split(",")[:100]:
        first, sign, last = piece.strip().replace(":", "-", 1).partition("-")
        start = whole_number(first, 1)
        yield max(start, 1), whole_number(last, count if sign else start)


def _section(lines: list[str], name: str) -> list[str]:
    kept: list[str] = []
    inside = False
    for line in lines:
        if mark := _mark_of(line):
            starts, label = mark
            if label in (name, "") and (inside or label):
                inside = starts
        elif inside:
            kept.append(line)
    return kept


def _mark_of(line: str) -> tuple[bool, str] | None:
    """Whether a line starts or ends a section, and the section's name; None for other lines."""
    if len(line) > _MAX_LINE:
        return None
    if found := _SECTION_MARK.search(line):
        return found[1] == "start", found[2] or ""
    if "ANCHOR" in line and (found := _ANCHOR.search(line)):
        return not found[1], found[2]
    if "egion" in line and (found := _REGION.fullmatch(line.strip())):
        return not found[1], found[2] or ""
    return None
