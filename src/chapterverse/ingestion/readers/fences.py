"""Parses the info line of fenced code, and removes code lines and marks that are hidden on the site."""

import re

from chapterverse.ingestion.document import Generator

_TITLE = re.compile(r"""(?:^|[\s,{])(?:title|filename|caption|file)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s,}]+))""")
_BRACKETED = re.compile(r"\[([^\[\]]+)\]\s*$")  # VitePress: ```js [config.js]
_LANGUAGE = re.compile(r"\{?\s*\.?([\w+#.-]+)")
_MAGIC = re.compile(
    r"[ \t]*+(?://|#|--|;|/\*|<!--|\{/\*|%|REM)[ \t]*+"
    r"(?:highlight-next-line|highlight-start|highlight-end)[ \t]*+(?:\*/\}?|-->)?[ \t]*+"
)
_CODE_MARK = re.compile(
    r"(?<![ \t])[ \t]*+(?://|#|<!--|/\*|--|;)[ \t]*+\[!code [^\[\]\n]*+\][ \t]*+(?:-->|\*/)?[ \t]*+$", re.MULTILINE
)
_HIDDEN_RUST = re.compile(r"[ \t]*#(?:[ \t].*)?")
_PRE = re.compile(r"<(/?)pre(?=[\s>])", re.IGNORECASE)


def leaves_pre_open(html: str) -> bool:
    """Whether a `<pre>` begins in some HTML and does not end in it."""
    return _PRE.findall(html)[-1:] == [""]


def last_pre(text: str) -> int:
    """The place of the last `</pre>`; -1 if there is none."""
    return text.lower().rfind("</pre")


def describe(info: str) -> tuple[str, str]:
    """The language and the title of fenced code, from its info line."""
    info = info.strip()
    if not info:
        return "", ""
    found = _LANGUAGE.match(info)
    language = found[1] if found and not re.match(r"\{?\s*\w+\s*=", info) else ""
    title = _TITLE.search(info)
    if title:
        return language.split(",")[0], next(filter(None, title.groups()), "")
    bracketed = _BRACKETED.search(info)
    return language.split(",")[0], bracketed[1] if bracketed else ""


def fenced(code: str, language: str) -> str:
    """Fenced code, with a fence that is longer than those in the code."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", code) or [""]))
    return f"{fence}{language}\n{code}\n{fence}"


def shown(code: str, language: str, generator: Generator) -> str:
    """The code as the site shows it."""
    if generator == "mdbook" and language == "rust":
        return "\n".join(_rust(code))
    if generator == "docusaurus" and "highlight-" in code:
        return "\n".join(line for line in code.split("\n") if not _MAGIC.fullmatch(line))
    if generator == "vitepress" and "[!code" in code:
        return _CODE_MARK.sub("", code)
    return code


def _rust(code: str) -> list[str]:
    """The lines that mdBook shows: it hides those that begin with `# `; `##` is an escaped `#`."""
    kept = (line for line in code.split("\n") if not _HIDDEN_RUST.fullmatch(line))
    return [re.sub(r"^([ \t]*)##", r"\1#", line) for line in kept]
