"""MDX to Markdown: the text inside components stays, the program around it goes.

Owns imports, exports, JSX tags and `{expressions}`. Never runs any of it. One pass over the text; what does not close
is left as it stands.
"""

import re

from chapterverse.ingestion.readers.marks import Mark, opening
from chapterverse.ingestion.readers.rawhtml import is_hidden

_TOKEN = re.compile(
    r"""(?P<escaped>\\.)
    |^[ \t>]*(?P<fence>`{3,}|~{3,})[^\n`]*$
    |(?P<code>(?<!`)`[^`\n]+`(?!`)|(?<!`)``(?!`)[^\n]{1,500}?(?<!`)``(?!`))
    |(?P<math>\$\$[^$]{1,3000}\$\$|\$[^\s$][^$\n]{0,300}\$)
    |(?P<comment><!--)
    |(?P<tag><(?P<end>/?)(?P<name>[A-Za-z][\w.:-]*|(?=>)))
    |(?P<id>\{\#[\w:.-]+\})
    |(?P<brace>\{)
    |^(?P<module>import\s+(?:['"*{]|[\w$]+[\s,].{0,300}?\bfrom\b)|export\s+(?:default|const|let|var|function|class|async|[{*]))
    """,
    re.VERBOSE | re.MULTILINE,
)
_BRACE = re.compile(r"[{}]")
_INSIDE_TAG = re.compile(r"[^<>{}\"'`]++|\"[^\"]*\"|'[^']*'|`[^`]*`")
_STRING = re.compile(r"\{\s*(['\"`])([^{}]*)\1\s*\}", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|\{\s*["'`]([^"'`{}]*)["'`]\s*\})""")
_SPOKEN = ("label", "title", "summary", "caption", "content", "description", "alt")  # attributes that readers see
_KEPT = {"table", "thead", "tbody", "tfoot", "tr", "td", "th", "pre", "code", "ul", "ol", "li", "br", "img"}
_KEPT |= {"h1", "h2", "h3", "h4", "h5", "h6", "details", "summary", "script", "style"}
_MAX_EXPRESSION = 20_000  # characters; longer ones are taken for text
_MAX_TAG_PIECES = 500


def strip(text: str) -> str:
    """Markdown, with marks for the components that are admonitions or tabs."""
    return _Stripper(text).run()


class _Stripper:
    def __init__(self, text: str) -> None:
        self._text = text
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
        """Handles one token and says where to go on."""
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
        else:
            end = token.end()
        self._put(self._text[token.start() : end])
        return end

    def _module_end(self, start: int) -> int:
        """An import or export lasts to the next blank line where its braces are closed."""
        end = start
        while (end := self._text.find("\n\n", end)) >= 0:
            body = self._text[start:end]
            if body.count("{") <= body.count("}") or len(body) > _MAX_EXPRESSION:
                return end
            end += 2
        return len(self._text)

    def _closing_brace(self, start: int) -> int | None:
        depth = 0
        for brace in _BRACE.finditer(self._text, start, start + _MAX_EXPRESSION):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                return brace.end()
        return None

    def _expression(self, start: int) -> int:
        end = self._closing_brace(start)
        if end is None:  # not an expression, and neither is anything up to where the search gave up
            end = min(start + _MAX_EXPRESSION, len(self._text))
            self._put(self._text[start:end])
        elif literal := _STRING.fullmatch(self._text, start, end):
            self._put(literal[2])
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
        elif name in _KEPT:
            self._put(self._text[token.start() : end])
        else:
            self._component(token, rest, alone)
        return end

    def _tag_end(self, place: int) -> int | None:
        for _ in range(_MAX_TAG_PIECES):
            if self._text.startswith(">", place):
                return place + 1
            if self._text.startswith("{", place):
                after = self._closing_brace(place)
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
        elif closing and name in self._hidden:
            while self._hidden.pop() != name:
                pass

    def _component(self, token: re.Match[str], rest: str, alone: bool) -> None:
        name, closing = token["name"], bool(token["end"])
        given = {key: next(filter(None, values), "") for key, *values in _ATTRIBUTE.findall(rest)}
        if name == "Admonition":
            mark = Mark("end") if closing else opening(given.get("type", "note"), given.get("title", ""))
            self._put(f"\n\n{mark}\n\n")
        elif closing or not name[:1].isupper():
            self._put("\n\n" if name in ("div", "section", "p", "center", "article") else "")
        elif name == "TabItem":
            self._put(f"\n\n{Mark('label', given.get('label') or given.get('value', ''))}\n\n")
        elif spoken := [given[key] for key in _SPOKEN if given.get(key)]:
            alone_on_line = not self._text[: token.start()].rpartition("\n")[2].strip()
            self._put("\n\n" + "\n\n".join(spoken) + "\n\n" if alone_on_line else " ".join(spoken))
