"""Converts MDX to Markdown: keeps the text of components and removes the code.

Handles imports, exports, JSX tags and `{expressions}` without running them. A component that is imported from a
Markdown file of the source is replaced by that file's text. The text is read in one pass; unclosed syntax is kept.
"""

import html
import re

from chapterverse.ingestion.inclusion import Included, Inclusion
from chapterverse.ingestion.limits import require_hidden_depth
from chapterverse.ingestion.readers import frontmatter, includes
from chapterverse.ingestion.readers.marks import ADMONITIONS, LineMark, opening
from chapterverse.ingestion.readers.rawhtml import is_hidden

_TOKEN = re.compile(
    r"""(?P<escaped>\\.)
    |^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?P<fence>`{3,}|~{3,})[^\n`]*$
    |(?P<code>(?<!`)`[^`\n]+`(?!`)|(?<!`)``(?!`)[^\n]{1,500}?(?<!`)``(?!`))
    |(?P<math>\$\$[^$]{1,3000}\$\$|\$[^\s$][^$\n]{0,300}\$)
    |(?P<comment><!--)
    |(?P<tag><(?P<end>/?)(?P<name>[A-Za-z][\w.:-]*|(?=>)))
    |\{/\*[ \t]*(?P<anchor>\#[\w:.-]+)[ \t]*\*/\}
    |(?P<id>\{\#[\w:.-]+\})
    |(?P<brace>\{)
    |^(?P<module>import\s++(?:(?:type\s++(?!from\b))?+(?:(?!from\s*+['"])[\w$]++\s*+(?:,\s*+)?+)?+
                (?:\*\s++as\s++[\w$]++|\{[^{}'"]{0,1000}\})?+\s*+\bfrom\s*+)?+
            ['"][^'"\n]+['"][ \t]*(?:;|$)
        |export\s+(?:\{|\*\s|default\s+(?:function|class|async|[({\[]|[\w$.]+(?:\(|;?$))
            |(?:const|let|var|function|class|async)\b[^\n]*[=({]))
    """,
    re.VERBOSE | re.MULTILINE,
)
_FENCE = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)(.*)")
_INSIDE_TAG = re.compile(r"[^<>{}\"'`]++|\"[^\"]*\"|'[^']*'|`[^`]*`")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`(?:(?!\$\{)[^`\\]|\\.)*+`""", re.DOTALL)
_STRING = re.compile(rf"\{{\s*(?:{_QUOTED.pattern})(?:\s*\+\s*(?:{_QUOTED.pattern}))*+\s*\}}", re.DOTALL)
_BRACE = re.compile(  # or an expression or escape with braces that do not count
    rf"{_STRING.pattern}|\{{/\*[\s\S]{{0,1000}}?\*/\s*\}}|\\.|[{{}}]", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|(.))", re.DOTALL)  # of ASCII: others may be private
_SYNTAX = re.compile(r"[!-/:-@\[-`{-~\n]")  # may have a meaning in Markdown
_ATTRIBUTE = re.compile(
    r"""(?<![\w-])([\w-]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|\{\s*(?:require\(|useBaseUrl\()?\s*["'`]([^"'`{}]*)["'`][^{}]{0,40}\})"""
)
_IMPORTED = re.compile(r"""^import\s+([\w$]+)\s+from\s+['"](?P<path>[^'"\n]{1,300})['"]""", re.MULTILINE)
_SPOKEN = (
    "label",
    "title",
    "summary",
    "caption",
    "content",
    "description",
    "text",
)  # attributes that are usually visible
_KEPT = {"table", "thead", "tbody", "tfoot", "tr", "td", "th", "pre", "code", "ul", "ol", "li", "br", "dl", "dt", "dd"}
_KEPT |= {"h1", "h2", "h3", "h4", "h5", "h6", "script", "style", "figure", "figcaption"}
_KEPT |= {"a", "b", "strong", "em", "i", "sub", "sup", "kbd", "var", "samp", "blockquote"}
_BLOCKS = {"div", "section", "p", "center", "article", "details", "summary", "main", "header", "footer"}
_IMAGES = {"img", "Image", "Picture", "ThemedImage", "Zoom"}
_UNSPOKEN = {"Head", "TOCInline", "DocCardList", "Redirect", "BrowserOnly", "Tabs", "Layout", "Since", "SourcePR"}
_LABELLED = {"TabItem": ("label", "value"), "Tab": ("title", "label"), "Fragment": ("slot",), "Step": ("title",)}
_MAX_EXPRESSION = 20_000  # characters; longer ones are treated as text
_MAX_TAG_PIECES = 500
_MAX_CODE_BLOCK = 50_000  # characters


def strip(text: str, inclusion: Inclusion | None = None) -> str:
    """Convert MDX to Markdown, with marks for the components that are admonitions or tabs."""
    if "mdx-code-block" in text:
        text = _unfenced(text)
    return _Stripper(text, inclusion).run()


def _unfenced(text: str) -> str:
    """Remove the fences named `mdx-code-block`: in Docusaurus, their content is part of the page."""
    kept: list[str] = []
    fence = ""  # the open fence
    inside = False  # whether it is an `mdx-code-block`
    for line in text.split("\n"):
        mark = _FENCE.fullmatch(line)
        if not fence and mark:
            fence, inside = mark[1], mark[2].strip() == "mdx-code-block"
            kept += [] if inside else [line]
        elif fence and mark and mark[1].startswith(fence) and not mark[2].strip():
            kept += [] if inside else [line]
            fence, inside = "", False
        else:
            kept.append(line)
    return "\n".join(kept)


class _Stripper:
    def __init__(self, text: str, inclusion: Inclusion | None) -> None:
        self._text = text
        self._inclusion = inclusion
        self._imports = {found[1]: found["path"] for found in _IMPORTED.finditer(text)}
        self._closed = _closed(text)
        self._out: list[str] = []
        self._hidden: list[str] = []  # open elements from the outermost hidden one inward

    def run(self) -> str:
        place = 0
        while token := _TOKEN.search(self._text, place):
            self._put(self._text[place : token.start()])
            place = self._step(token)
        self._put(self._text[place:])
        return "".join(self._out)

    def _put(self, text: str) -> None:
        if not self._hidden:
            self._out.append(text)

    def _step(self, token: re.Match[str]) -> int:
        """Handle a token and return the next position."""
        if token["fence"]:
            closing = re.compile(rf"^[ \t>]*{token['fence']}+[ \t]*$", re.MULTILINE).search(self._text, token.end())
            end = closing.end() if closing else len(self._text)
        elif token["comment"]:
            end = self._text.find("-->", token.end())
            return end + 3 if end >= 0 else len(self._text)
        elif token["module"]:
            return self._module_end(token.start())
        elif token["tag"]:
            return self._tag(token)
        elif token["brace"]:
            return self._expression(token.start())
        elif token["anchor"]:
            self._put(f"{{{token['anchor']}}}")
            return token.end()
        else:
            end = token.end()
        self._put(self._text[token.start() : end])
        return end

    def _module_end(self, start: int) -> int:
        """The end of an import or export: the first blank line after which no brace is open."""
        end = start
        while (end := self._text.find("\n\n", end)) >= 0:
            body = self._text[start:end]
            if body.count("{") <= body.count("}") or len(body) > _MAX_EXPRESSION:
                return end
            end += 2
        return len(self._text)

    def _expression(self, start: int) -> int:
        end = self._closed.get(start)
        if end is None:  # not an expression
            self._put("{")
            return start + 1
        if literal := _STRING.fullmatch(self._text, start, end):
            self._put(_SYNTAX.sub(lambda sign: f"&#{ord(sign[0])};", _value(literal[0])))
        return end

    def _tag(self, token: re.Match[str]) -> int:
        end = self._tag_end(token.end())
        if end is None:
            self._put(token[0])
            return token.end()
        name, rest = token["name"], self._text[token.end() : end - 1]
        alone = rest.endswith("/") or name in ("br", "img", "hr")
        if self._hidden or (not token["end"] and is_hidden(rest)):
            self._follow_hidden(name, closing=bool(token["end"]), alone=alone)
        elif name == "CodeBlock" and not token["end"] and not alone:
            return self._code_block(rest, end)
        elif name in _KEPT:
            self._put(self._text[token.start() : end])
        else:
            self._component(token, rest)
        return end

    def _tag_end(self, place: int) -> int | None:
        for _ in range(_MAX_TAG_PIECES):
            if self._text.startswith(">", place):
                return place + 1
            if self._text.startswith("{", place):
                after = self._closed.get(place)
            else:
                piece = _INSIDE_TAG.match(self._text, place)
                after = piece.end() if piece else None
            if after is None:
                return None
            place = after
        return None

    def _follow_hidden(self, name: str, closing: bool, alone: bool) -> None:
        if not closing and not alone:
            self._hidden.append(name)
            require_hidden_depth(len(self._hidden))
        elif closing and name in self._hidden:
            while self._hidden.pop() != name:
                pass

    def _component(self, token: re.Match[str], rest: str) -> None:
        name, closing = token["name"], bool(token["end"])
        given = {key: html.unescape(next(filter(None, values), "")) for key, *values in _ATTRIBUTE.findall(rest)}
        if name in ("Admonition", "Aside", "Callout", "Note", "Tip", "Warning", "Danger", "Info", "Caution"):
            self._admonition(name, given, closing)
        elif name in _IMAGES:
            self._put(_image(given))
        elif name in ("Link", "Button") and (closing or "to" in given or "href" in given):
            target = html.escape(given.get("to") or given.get("href", ""))
            self._put("</a>" if closing else f'<a href="{target}">')
        elif closing or not name[:1].isupper():
            self._put("\n\n" if name in _BLOCKS else "")
        elif name in _LABELLED:
            label = next((given[key] for key in _LABELLED[name] if given.get(key)), "")
            self._put(f"\n\n{LineMark('label', label)}\n\n" if label else "")
        elif not self._imported(name) and name not in _UNSPOKEN:
            self._speak(token, given)

    def _admonition(self, name: str, given: dict[str, str], closing: bool) -> None:
        kind = given.get("type", "note") if name in ("Admonition", "Aside", "Callout") else name
        mark = opening(kind if kind.lower() in ADMONITIONS else "note", given.get("title", ""))
        self._put(f"\n\n{LineMark('end') if closing else mark}\n\n")

    def _speak(self, token: re.Match[str], given: dict[str, str]) -> None:
        """Write the text of an unknown component: its attributes that are usually visible."""
        spoken = [given[key] for key in _SPOKEN if given.get(key)]
        target = given.get("href") or given.get("to", "")
        if spoken and target and not re.search(r"[\[\]<>\n]", spoken[0] + target):
            spoken[0] = f"[{spoken[0]}](<{target}>)"
        if spoken:
            begin = self._text.rfind("\n", 0, token.start()) + 1
            alone_on_line = not self._text[begin : token.start()].strip()
            self._put("\n\n" + "\n\n".join(spoken) + "\n\n" if alone_on_line else " ".join(spoken))

    def _imported(self, name: str) -> bool:
        """Write the Markdown file that a component was imported from; returns whether there is one."""
        if (included := self._open(name, (".md", ".mdx"))) is None or self._inclusion is None:
            return False
        with self._inclusion.inside(included):
            text = includes.expand(frontmatter.split(included.text)[1], self._inclusion)
            self._put(f"\n\n{strip(text, self._inclusion)}\n\n")
        return True

    def _open(self, name: str, endings: tuple[str, ...] = ()) -> Included | None:
        path = self._imports.get(name, "").rpartition("!")[2]
        if not path or self._inclusion is None or (endings and not path.endswith(endings)):
            return None
        if path.startswith("@site/"):
            path = path.removeprefix("@site/").removeprefix("docs/")
        return self._inclusion.read(path if path.startswith(".") else f"/{path.lstrip('~/')}")

    def _code_block(self, rest: str, start: int) -> int:
        """Write the code of a `<CodeBlock>`: a string, or an imported file. Returns the next position."""
        end = self._text.find("</CodeBlock>", start, start + _MAX_CODE_BLOCK)
        if end < 0:
            return start
        given = {key: next(filter(None, values), "") for key, *values in _ATTRIBUTE.findall(rest)}
        inner = self._text[start:end].strip()
        if literal := _STRING.fullmatch(inner) or re.fullmatch(r"\{\s*`[^`]*`\s*\}", inner):
            code = _value(literal[0])
        else:
            included = self._open(inner.strip("{} \t\n"))
            code = included.text if included else "" if inner.startswith("{") else inner
        if code.strip():
            title = f' title="{given["title"]}"' if given.get("title") else ""
            self._put(f"\n\n````{given.get('language', '')}{title}\n{code.strip(chr(10))}\n````\n\n")
        return end + len("</CodeBlock>")


def _closed(text: str) -> dict[int, int]:
    """The end of each expression in braces by its start."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0][0] == "{":
            ends[brace.start()] = brace.end()
        elif brace[0] == "}" and opened:
            ends[opened.pop()] = brace.end()
    return {start: end for start, end in ends.items() if end - start <= _MAX_EXPRESSION}


def _value(expression: str) -> str:
    """The value of strings of JavaScript."""

    def said(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else {"n": "\n", "t": "\t"}.get(escape[2], escape[2])

    return "".join(_ESCAPE.sub(said, string[1:-1]) for string in _QUOTED.findall(expression))


def _image(given: dict[str, str]) -> str:
    source, alternative = given.get("src", ""), given.get("alt", "")
    return f'<img src="{html.escape(source)}" alt="{html.escape(alternative)}">' if source or alternative else ""
