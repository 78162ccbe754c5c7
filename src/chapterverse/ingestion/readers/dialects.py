"""The dialects of Markdown: Hugo's shortcodes, MkDocs' indented blocks, Docusaurus' and MyST's colon fences.

Owns rewriting them to plain Markdown with marks before parsing. Never parses Markdown itself, leaves programs as they
are, and takes time in proportion to the text, whatever is in it.
"""

import re
from collections.abc import Iterator

from chapterverse.ingestion.readers.marks import ADMONITIONS, Mark, opening

_FENCE = re.compile(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(`{3,}|~{3,})(.*)")
_MKDOCS_BLOCK = re.compile(r'(?:!!!|\?\?\?\+?)\s+([\w-]+)[ \w-]*?(?:\s+"(.*)")?\s*')
_MKDOCS_TAB = re.compile(r'===[+!]?\s+"(.+)"\s*')
_COLONS = re.compile(r":{3,}\s*(?:\{([\w:-]+)\}|([\w-]*))\s*(?:\[(.*)\]\s*)?(?:\{[^{}]*\}\s*)?(.*)")
_MYST_OPTION = re.compile(r"\s*:[\w-]+:(?:\s.*)?")
_MYST_TARGET = re.compile(r"\s*\([^()\n]{1,200}\)=\s*")

_SHORTCODE = re.compile(
    r"(?P<program>^[ \t>]*(?P<fence>`{3,}|~{3,})[^\n`]*\n(?:[\s\S]*?\n)??[ \t>]*(?P=fence)[`~]*[ \t]*$"
    r"|(?<!`)`[^`\n]+`(?!`))"
    r"|\{\{[<%]-?\s*(?P<end>/?)\s*(?P<name>[\w./-]+)(?P<rest>(?:(?!\{\{)[\s\S]){0,9000}?)/?\s*-?[>%]\}\}",
    re.MULTILINE,
)
# only the site knows the value of its settings; with the name in its place the sentence keeps its shape
_SETTING = re.compile(r'\{\{[<%]\s*(?:skew|param)\s+"?([\w.-]+)"?[^{}]{0,200}[>%]\}\}')
_ARGUMENT = re.compile(r'(?:([\w-]+)\s*=\s*)?(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`|([^\s"=`]+))')
_LINE_START = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?")
_HEADINGS = {  # what the documentation theme of Kubernetes writes for its heading shortcode
    "cleanup": "Cleaning up",
    "objectives": "Objectives",
    "options": "Options",
    "prerequisites": "Before you begin",
    "seealso": "See also",
    "synopsis": "Synopsis",
    "whatsnext": "What's next",
}


def rewrite(text: str) -> str:
    """Plain Markdown with marks, from any of the dialects."""
    if "{{<" in text or "{{%" in text:
        text = _rewrite_hugo(text)
    return "\n".join(_rewrite_lines(text))


def _rewrite_hugo(text: str) -> str:
    for name in ("comment", "highlight", "mermaid"):
        text = _rewrite_verbatim(text, name)
    return _SHORTCODE.sub(_shortcode, text)


def _rewrite_verbatim(text: str, name: str) -> str:
    """Shortcodes whose inside is not Markdown: comments go, programs become fences."""
    opens = re.compile(rf"\{{\{{[<%]\s*{name}\b((?:(?!\{{\{{)[\s\S]){{0,300}}?)[>%]\}}\}}")
    closes = re.compile(rf"\{{\{{[<%]\s*/\s*{name}\s*[>%]\}}\}}")
    done, place = [], 0
    while (begin := opens.search(text, place)) and (end := closes.search(text, begin.end())):
        done.append(text[place : begin.start()])
        if name != "comment":
            language = "mermaid" if name == "mermaid" else (begin[1].split() or [""])[0].strip('"')
            done.append(f"\n```{language}\n{text[begin.end() : end.start()]}\n```\n")
        place = end.end()
    return "".join(done) + text[place:]


def _shortcode(match: re.Match[str]) -> str:
    if match["program"]:
        return _SETTING.sub(r"{\1}", match["program"])
    name, given = match["name"].lower(), _arguments(match["rest"])
    if name in ADMONITIONS or name in ("alert", "pageinfo"):
        kind = name if name in ADMONITIONS else "note"
        return _own_line(match, Mark("end") if match["end"] else opening(kind, given.get("title", "")))
    if match["end"]:
        return ""
    if name in ("tab", "details", "expand"):
        label = given.get("name") or given.get("summary") or given.get("title") or given.get("0", "")
        return _own_line(match, Mark("label", label))
    return _SETTING.sub(r"{\1}", match[0]) if name in ("skew", "param") else _value(name, given)


def _value(name: str, given: dict[str, str]) -> str:
    """What a shortcode says inside a sentence."""
    match name:
        case "glossary_tooltip":
            return given.get("text") or given.get("term_id", "").replace("-", " ")
        case "heading":
            return _HEADINGS.get(given.get("0", ""), given.get("0", ""))
        case "figure" | "imgproc":
            return given.get("caption") or given.get("title") or given.get("alt", "")
        case "feature-state":
            version, state = given.get("for_k8s_version", ""), given.get("state", "")
            return f"Feature state: Kubernetes {version} [{state}]" if version else ""
    return given.get("text", "")


def _arguments(text: str) -> dict[str, str]:
    """Named arguments by name, the others by position."""
    found = [(name, quoted or ticked or bare) for name, quoted, ticked, bare in _ARGUMENT.findall(text)]
    return {name or str(place): value.replace('\\"', '"') for place, (name, value) in enumerate(found)}


def _own_line(match: re.Match[str], sign: Mark) -> str:
    """The mark on a line of its own, as deep in its list or quote as the shortcode was."""
    begin = match.string.rfind("\n", 0, match.start()) + 1
    before = _LINE_START.match(match.string, begin, match.start())
    indent = re.sub(r"[^\s>]", " ", before[0]) if before else ""
    return f"\n{indent}{sign}\n{indent}"


def _rewrite_lines(text: str) -> Iterator[str]:
    indented: list[tuple[int, Mark | None]] = []  # how far the body of each open MkDocs block is indented, and its end
    fence, options = "", False
    for raw in text.split("\n"):
        line = raw.expandtabs(4) if indented else raw
        bare = line.lstrip(" ")
        depth = len(line) - len(bare)
        while indented and bare and depth < indented[-1][0]:
            at, end = indented.pop()
            fence = ""
            if end:
                yield " " * (at - 4 * len(indented) - 4) + str(end)
        line = line[4 * len(indented) :]
        if fence:
            yield line
            if line.strip(" >\t").startswith(fence) and not line.strip(" >\t" + fence[0]):
                fence = ""
            continue
        options = options and bool(_MYST_OPTION.fullmatch(line))
        if options or _MYST_TARGET.fullmatch(line):
            yield ""
        elif (begin := _FENCE.fullmatch(line)) and not (begin[1][0] == "`" and "`" in begin[2]):
            fence = begin[1]
            yield line
        elif sign := _block_mark(bare):
            yield line[: len(line) - len(bare)] + str(sign)
            if bare[0] != ":":
                indented.append((depth + 4, None if sign.kind == "label" else Mark("end")))
            options = bare.startswith(":::") and "{" in bare
        else:
            yield line
    for at, end in reversed(indented):
        if end:
            yield " " * max(at - 4 * len(indented), 0) + str(end)


def _block_mark(line: str) -> Mark | None:
    """The mark that a line stands for in MkDocs, Docusaurus or MyST; None for any other line."""
    if line[:3] in ("!!!", "???") and (block := _MKDOCS_BLOCK.fullmatch(line)):
        return opening(block[1], block[2] or "")
    if line.startswith("===") and (tab := _MKDOCS_TAB.fullmatch(line)):
        return Mark("label", tab[1])
    if line.startswith(":::") and (colons := _COLONS.fullmatch(line)):
        name, title = colons[1] or colons[2], colons[3] or colons[4]
        if not name and not title.strip():
            return Mark("end")
        if name == "admonition":
            return Mark("admonition", title)
        return opening(name, title.removeprefix(".").strip())
    return None
