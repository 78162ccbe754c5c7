"""Rewrites dialects of Markdown to plain Markdown with marks: Hugo's shortcodes, MkDocs' indented blocks and slash
fences, the colon fences of Docusaurus, VitePress and MyST.

Code is not changed, and the time is proportional to the length of the text.
"""

import html
import re
from collections.abc import Iterator, Mapping
from functools import cache
from textwrap import dedent

from pygments.lexers import get_all_lexers

from chapterverse.ingestion.readers import fences
from chapterverse.ingestion.readers.marks import ADMONITIONS, LineMark, opening

_FENCE = re.compile(r"[\s>]*+(?:(?:[-*+]|\d+[.)])\s++)*+(`{3,}+|~{3,}+)(.*)")
_MKDOCS_BLOCK = re.compile(r'(?:!!!|\?\?\?\+?)\s*+([\w-]++)[\s\w-]*+(?:(?<=\s)"(.*)")?\s*+')
_SLASHES = re.compile(r"/{3,}\s*(?:([\w-]+)\s*(?:\|\s*(.*))?)?")
_COMMENT_TERM = re.compile(r"^(<!--[^\n]{0,300}-->[ \t]*\n\n?:[ ]{3})", re.MULTILINE)  # a definition with a hidden term
_AFTER_HTML = re.compile(r"^([ \t]*</\w+>[ \t]*)\n(?=[ ]{0,3}\[[^\[\]\n]{1,200}\]:[ \t])", re.MULTILINE)
_BROKEN_RULE = re.compile(r"[ \t:|-]+")  # the line below a table's header; Python-Markdown allows gaps in it
_DEFINED = re.compile(r"^[ \t]{0,12}\[([^\[\]\n]{1,300})\]:", re.MULTILINE)
_OBJECT = re.compile(r"(?<![\]\\!])\[(`[^`\n]{1,200}`|[^\[\]`\n]{1,200})\]\[((?:[\w-]+\.)+[\w-]+|)\](?![(\[])")
_MKDOCS_TAB = re.compile(r'===[+!]?\s+"(.+)"\s*')
_COLONS = re.compile(r":{3,}\s*(?:\{([\w:-]+)\}|([\w-]*))\s*(?:\[(.*)\]\s*)?(?:\{[^{}]*\}\s*)?(.*)")
_MYST_OPTION = re.compile(r"\s{0,40}:[\w-]{1,60}:(?:\s.*)?")
_SLASH_OPTION = re.compile(r"[ ]{4,40}[\w-]{1,60}:\s.*")
_MD_IN_HTML = re.compile(
    r"^[ \t]*(<(\w+)\b[^<>\n]{0,200}\smarkdown(?=[\s=>])[^<>\n]{0,200}>)\n((?:.*\n){0,100}?)[ \t]*(</\2>)", re.MULTILINE
)
_LISTING = re.compile(
    r"""^<(/?)Listing\b((?:[^<>"']++|"[^"]{0,2000}+"|'[^']{0,2000}+'){0,20}+)>[ \t]*$""", re.MULTILINE
)
_ATTRIBUTE = re.compile(r"""(?<![\w-])([\w-]++)=(?:"([^"]*)"|'([^']*)')""")
_ABBREVIATION = re.compile(r"[ ]{0,3}\*\[[^\[\]\n]{1,200}\]:[ \t].*")
_MYST_TARGET = re.compile(r"\s*\([^()\n]{1,200}\)=\s*")

_FENCE_LINE = re.compile(r"(`{3,}+|~{3,}+)[^`]*")
_SHORTCODE = re.compile(
    r"(?P<program>(?<!`)`[^`\n]+`(?!`))"
    r"|\{\{[<%]-?\s*+(?P<end>/?)\s*+(?P<name>[\w./-]++)(?P<rest>(?:(?!\{\{)[\s\S]){0,9000}?)(?:/|(?<!\s))\s*+-?[>%]\}\}",
    re.MULTILINE,
)
# inserts a parameter of the site; if its value is not known, its name is shown
_SETTING = re.compile(r'\{\{[<%]\s*(?:skew|param)\s+"?([\w.-]+)"?[^{}]{0,200}[>%]\}\}')
_ARGUMENT = re.compile(r'(?:([\w-]+)\s*=\s*)?(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`|([^\s"=`]+))')
_LINE_START = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?")
_PAIRED = re.compile(r"\{\{[<%]\s*+(?P<end>/?)\s*+(?P<name>[\w-]++)(?P<rest>(?:(?!\{\{)[\s\S]){0,300}?)[>%]\}\}")
_CODE = {"code", "codeblock", "code-block"}
_HEADINGS = {  # texts of the `heading` shortcode in the documentation of Kubernetes
    "cleanup": "Cleaning up",
    "objectives": "Objectives",
    "options": "Options",
    "prerequisites": "Before you begin",
    "seealso": "See also",
    "synopsis": "Synopsis",
    "whatsnext": "What's next",
}


def rewrite(text: str, settings: Mapping[str, str]) -> str:
    """Convert any of the dialects to plain Markdown with marks. `settings`: values of the site's parameters by name."""
    if "{{<" in text or "{{%" in text:
        text = _rewrite_hugo(_SETTING.sub(lambda found: settings.get(found[1], f"{{{found[1]}}}"), text))
    if "][^" in text:  # Python-Markdown: a reference followed by a footnote
        text = text.replace("][^", "]\u200b[^")
    if "]:" in text:  # in CommonMark, an HTML block ends only at a blank line
        text = _AFTER_HTML.sub("\\1\n\n", text)
    if " markdown" in text and "</" in text:
        text = "".join(piece if fenced else _MD_IN_HTML.sub(_spaced, piece) for fenced, piece in programs(text))
    if "</Listing>" in text:
        text = _with_listings(text)
    if "<!--" in text:
        text = _COMMENT_TERM.sub("\u200b\\1", text)
    return "\n".join(_rewrite_lines(text))


def _spaced(found: re.Match[str]) -> str:
    """Separate the Markdown inside of an HTML element from the tags, because CommonMark would read it as HTML."""
    lines = dedent(found[3]).split("\n")
    inside = "\n".join(f"\n{line}\n" if line.startswith("<") else line for line in lines)
    return f"{found[1]}\n\n{inside}\n\n{found[4]}\n"


def _with_listings(text: str) -> str:
    """Replace the tags of mdBook's `<Listing>` by the name of its file and its caption, which is Markdown."""
    caption = ""

    def shown(tag: re.Match[str]) -> str:
        nonlocal caption
        if tag[1]:
            return f"\n{caption}\n"
        given = {name: html.unescape(double or single) for name, double, single in _ATTRIBUTE.findall(tag[2])}
        number = f"Listing {given['number']}" if "number" in given else ""
        caption = ": ".join(filter(None, (number, given.get("caption", ""))))
        return f"Filename: {given['file-name']}\n" if "file-name" in given else ""

    return "".join(piece if fenced else _LISTING.sub(shown, piece) for fenced, piece in programs(text))


def _without_objects(line: str, defined: set[str]) -> str:
    """Replace references to objects (`[text][package.Name]`), which only a plug-in of MkDocs can resolve, by their
    text. References that are defined on the page are kept."""
    return _OBJECT.sub(lambda found: found[0] if label_of(found[2] or found[1]) in defined else found[1], line)


def label_of(text: str) -> str:
    """The text of a reference's label as CommonMark compares it."""
    return " ".join(text.casefold().split())


def _rewrite_hugo(text: str) -> str:
    text = _rewrite_verbatim(text)
    pieces = programs(text)
    return "".join(piece if fenced else _SHORTCODE.sub(_shortcode, piece) for fenced, piece in pieces)


def programs(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces of complete lines, each with whether it is fenced code. An unclosed fence ends with the
    text."""
    fence = ""
    gathered: list[str] = []
    for line in text.splitlines(keepends=True):
        bare = line.strip(" \t>\n")
        if not fence and (begin := _FENCE_LINE.fullmatch(bare)):
            yield False, "".join(gathered)
            gathered, fence = [line], begin[1]
        elif fence and bare.startswith(fence) and not bare.strip("`~"):
            yield True, "".join([*gathered, line])
            gathered, fence = [], ""
        else:
            gathered.append(line)
    yield bool(fence), "".join(gathered)


def _rewrite_verbatim(text: str) -> str:
    """Rewrite the shortcodes with verbatim content: comments are removed, code becomes fenced. A shortcode is code if
    its name says so (`text` and `console` are languages too) and an argument names a language in one of its uses on the
    page; others with a language, such as conditions and tabs, have Markdown inside."""
    tags = list(_PAIRED.finditer(text))
    closed = {tag["name"]: tag.start() for tag in tags if tag["end"]}  # the last time
    coded = {tag["name"] for tag in tags if _language(tag["rest"]) in _languages()} & (_CODE | _languages())
    verbatim = {"comment", "highlight", "mermaid"} | coded
    done, place = [], 0
    begin: re.Match[str] | None = None
    for tag in tags:
        name = tag["name"]
        if begin is None:
            opens = not tag["end"] and name in verbatim and tag.start() < closed.get(name, 0)
            begin = tag if opens else None
        elif tag["end"] and name == begin["name"]:
            done.append(text[place : begin.start()])
            if name != "comment":
                code = _SHORTCODE.sub(_inside_code, dedent(text[begin.end() : tag.start()])).strip("\n")
                language = "mermaid" if name == "mermaid" else _language(begin["rest"])
                done.append(_own_line(begin, fences.fenced(code, language)))
            begin, place = None, tag.end()
    return "".join(done) + text[place:]


def _language(arguments: str) -> str:
    """The argument that names the language of code, by the usual names of this argument."""
    given = _arguments(arguments)
    return next((given[name] for name in ("syntax", "lang", "language", "0") if name in given), "")


@cache
def _languages() -> frozenset[str]:
    known = (name for _, names, *_ in get_all_lexers(plugins=False) for name in names)
    return frozenset(("plain", "plaintext", *known))


def _inside_code(match: re.Match[str]) -> str:
    """The text of a shortcode in code; its name if the value is not known."""
    if match["program"] or match["end"]:
        return match["program"] or ""
    return _value(match["name"].lower(), _arguments(match["rest"])) or f"{{{match['name']}}}"


def _shortcode(match: re.Match[str]) -> str:
    if match["program"]:
        return match["program"]
    name, given = match["name"].lower(), _arguments(match["rest"])
    if name in ADMONITIONS or name in ("alert", "pageinfo"):
        kind = name if name in ADMONITIONS else "note"
        return _own_line(match, LineMark("end") if match["end"] else opening(kind, given.get("title", "")))
    if match["end"]:
        return ""
    if name in ("tab", "details", "expand", "accordion"):
        label = next(filter(None, map(given.get, ("name", "header", "summary", "title", "0"))), "")
        return _own_line(match, LineMark("label", label))
    if name == "card":
        return _own_line(match, _linked(given), "\n")  # in an HTML element, Markdown begins after an empty line
    return _value(name, given)


def _value(name: str, given: dict[str, str]) -> str:  # noqa: PLR0911 - a table of names
    """The text of an inline shortcode."""
    match name:
        case "glossary_tooltip":
            return given.get("text") or given.get("term_id", "").replace("-", " ")
        case "heading":
            return _HEADINGS.get(given.get("0", ""), given.get("0", ""))
        case "figure" | "imgproc" | "inline-image":
            return _figure(given)
        case "ref" | "relref":
            return given.get("0", "") or given.get("path", "")
        case "button" | "link":
            return _linked(given)
        case "feature-state":
            version, state = given.get("for_k8s_version", ""), given.get("state", "")
            return f"Feature state: Kubernetes {version} [{state}]" if version else ""
    return given.get("text", "")


def _figure(given: dict[str, str]) -> str:
    source, alternative = given.get("src") or given.get("0", ""), given.get("alt", "")
    caption = ": ".join(filter(None, (given.get("title", "").rstrip(":"), given.get("caption", ""))))
    image = f'<img src="{html.escape(source)}" alt="{html.escape(alternative)}">'
    return f"\n<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>\n" if caption else image


def _linked(given: dict[str, str]) -> str:
    name = given.get("text") or given.get("title", "")
    target = given.get("url") or given.get("link") or given.get("href", "")
    text = f"[{name}](<{target}>)" if name and target and not re.search(r"[\[\]<>\n]", name + target) else name
    return f"{text} {given.get('description', '')}".rstrip()


def _arguments(text: str) -> dict[str, str]:
    """The arguments of a shortcode: named ones by name, others by position."""
    found = [(name, quoted or ticked or bare) for name, quoted, ticked, bare in _ARGUMENT.findall(text)]
    return {name or str(place): value.replace('\\"', '"') for place, (name, value) in enumerate(found)}


def _own_line(match: re.Match[str], sign: LineMark | str, around: str = "") -> str:
    """The mark or text on separate lines, with the same indent as the shortcode."""
    begin = match.string.rfind("\n", 0, match.start()) + 1
    before = _LINE_START.match(match.string, begin, match.start())
    indent = re.sub(r"[^\s>]", " ", before[0]) if before else ""
    lines = str(sign).replace("\n", f"\n{indent}")
    return f"{around}\n{indent}{lines}\n{around}{indent}"


_Open = tuple[int, LineMark | None]  # an open MkDocs block: the indent of its body, and its closing mark


def _rewrite_lines(text: str) -> Iterator[str]:
    indented: list[_Open] = []
    fence, fence_depth = "", 0  # the line that ends the open code, and its indent
    options: re.Pattern[str] | None = None  # pattern of the option lines after a block's name
    defined = _defined(text)
    last_pre = text.count("\n", 0, fences.last_pre(text) + 1)
    for place, raw in enumerate(text.split("\n")):
        line = raw.expandtabs(4) if indented else raw
        bare = line.lstrip(" ")
        depth = len(line) - len(bare)
        if indented and bare and depth < indented[-1][0]:
            yield from _left_blocks(indented, depth, " " * fence_depth + fence if fence else "")
            fence = ""
        line = line[4 * len(indented) :]
        if fence:
            yield line
            fence = "" if _closes(line, fence) and _indent(line) < fence_depth + 4 else fence
            continue
        options = options if options and options.fullmatch(line) else None
        if (
            options
            or _MYST_TARGET.fullmatch(line)
            or (line.lstrip().startswith("*[") and _ABBREVIATION.fullmatch(line))
        ):
            yield ""
        elif begin := _opens(line):
            fence, fence_depth = begin[1], begin.start(1)
            yield line
        elif place < last_pre and line.lstrip(" \t>*+-").startswith("<") and fences.leaves_pre_open(line):
            fence, fence_depth = "</pre>", len(line)
            yield line
        elif sign := _block_mark(bare):
            yield line[: len(line) - len(bare)] + str(sign)
            if bare[0] not in ":/":
                indented.append((depth + 4, None if sign.kind == "label" else LineMark("end")))
            options = _SLASH_OPTION if bare[0] == "/" else _MYST_OPTION if bare[0] == ":" and "{" in bare else None
        else:
            yield _repaired(line, defined)
    for at, end in reversed(indented):
        if end:
            yield " " * max(at - 4 * len(indented), 0) + str(end)


def _opens(line: str) -> re.Match[str] | None:
    """The match of a line that opens fenced code. Backticks that are closed on the same line are inline code."""
    begin = _FENCE.fullmatch(line)
    return begin if begin and not (begin[1][0] == "`" and "`" in begin[2]) else None


def _closes(line: str, fence: str) -> bool:
    if fence == "</pre>":
        return "</pre" in line.lower()
    bare = line.strip(" >\t")
    return bare.startswith(fence) and not bare.strip(fence[0])


def _left_blocks(indented: list[_Open], depth: int, fence: str) -> Iterator[str]:
    """The lines that close the indented blocks that end at a line: the unclosed fence, and the mark of each block."""
    if fence:
        yield fence
    while indented and depth < indented[-1][0]:
        at, end = indented.pop()
        if end:
            yield " " * (at - 4 * len(indented) - 4) + str(end)


def _defined(text: str) -> set[str]:
    """The labels of link definitions."""
    return {label_of(name) for name in _DEFINED.findall(text)} if "][" in text else set()


def _repaired(line: str, defined: set[str]) -> str:
    """Adapt a line to CommonMark."""
    if "|" in line and _BROKEN_RULE.fullmatch(line):
        return re.sub(r"(?<=-)[ \t]+(?=-)", "", line)
    return _without_objects(line, defined) if "][" in line else line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" >\t"))


def _of_mkdocs(name: str, title: str | None) -> LineMark:
    """The mark of an MkDocs admonition, which may have any name. An empty title, which hides the label, is ignored."""
    if name.lower() in ADMONITIONS:
        return opening(name, title or "")
    return LineMark("admonition", title or name.capitalize(), name=name.lower())


def _block_mark(line: str) -> LineMark | None:  # noqa: PLR0911 - one line a dialect
    """The mark for a block line of MkDocs, Docusaurus or MyST; None for other lines."""
    if line[:3] in ("!!!", "???") and (block := _MKDOCS_BLOCK.fullmatch(line)):
        return _of_mkdocs(block[1], block[2])
    if line.startswith("///") and (slashes := _SLASHES.fullmatch(line)):
        return opening(slashes[1], slashes[2] or "") if slashes[1] else LineMark("end")
    if line.startswith("===") and (tab := _MKDOCS_TAB.fullmatch(line)):
        return LineMark("label", tab[1])
    if line.startswith(":::") and (colons := _COLONS.fullmatch(line)):
        name, title = colons[1] or colons[2], colons[3] or colons[4]
        if not name and not title.strip():
            return LineMark("end")
        if name == "admonition":
            return LineMark("admonition", title)
        return opening(name, begins=title) if colons[1] else opening(name, title.removeprefix("."))
    return None
