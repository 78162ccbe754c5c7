"""Roles and directive options of MyST."""

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Final

from chapterverse.ingestion.document import Reference
from chapterverse.ingestion.inline import formula, styled
from chapterverse.ingestion.readers.sphinx.objects import C_DOMAINS, KINDS, OBJECT, object_names
from chapterverse.ingestion.readers.sphinx.project import doc_key
from chapterverse.ingestion.readers.sphinx.scanner import make_id, normal_name

_TITLED = re.compile(r"(.+?)(?<!\s)\s*+<([^<>]*+)>", re.DOTALL)
_OPTION_LINE = re.compile(r"[ \t]{0,40}:([\w-]{1,60}):(.*)")
_YAML_LINE = re.compile(r"[ \t]{0,40}([\w-]{1,60}):(.*)")
_LABELLED = re.compile(r"^\(([^()\s]{1,200})\)=[ \t]*+\n(?:[ \t]*+\n)*+(#{1,6}[ \t].*)$", re.MULTILINE)
_NOT_SHOWN = re.compile(r"^(?:%.*|\+\+\+.*)$", re.MULTILINE)  # comments, and breaks between blocks
_WORDS: Final = ("ref", "numref", "doc", "term", "any", "abbr", "download", "eq")


def prepared(text: str) -> str:
    """Prepare text outside of code: removes the lines that MyST does not show, and turns the label before a heading
    into its anchor, as in Sphinx."""
    text = _NOT_SHOWN.sub("", text) if "%" in text or "+++" in text else text
    return _LABELLED.sub(lambda found: f"{found[2]} {{#{make_id(found[1])}}}", text) if ")=" in text else text


def is_object(directive: str) -> bool:
    """Whether a directive describes a function, an option or the like."""
    return OBJECT.fullmatch(directive) is not None


def options_of(lines: str) -> dict[str, str]:
    """The options of a directive: lines of `:name: value`, or YAML between two rules."""
    yaml = lines.startswith("---")
    found = (line.match(text) for text in lines.split("\n") for line in [_YAML_LINE if yaml else _OPTION_LINE])
    return {option[1]: option[2].strip() for option in found if option}


def glossary(text: str) -> Iterator[tuple[list[str], str]]:
    """Terms and their indented descriptions."""
    terms: list[str] = []
    meaning: list[str] = []
    for line in [*text.split("\n"), "."]:
        if not line[:1].strip():
            meaning.append(line)
            continue
        if terms and meaning:
            yield terms, dedent("\n".join(meaning))
            terms, meaning = [], []
        terms.append(line.strip())


def role(name: str, text: str, references: Mapping[str, Reference], folder: str) -> str:
    """The text of a role, with its link."""
    bare = name.rpartition(":")[2]
    titled = _TITLED.fullmatch(text)
    shown, target = (titled[1], titled[2]) if titled else (text, text)
    if bare == "math":
        return formula(text)
    if bare in ("sub", "sup"):
        return styled("sub" if bare == "sub" else "sup", text)
    if bare in _WORDS:
        found = reference(target, references, folder)
        title = found.title if found and bare != "term" else ""
        return _linked(shown if titled else title or shown, found)
    domain = name.partition(":")[0]
    kinds = (domain,) if domain in C_DOMAINS else KINDS
    keys = (f"{kind}:{name}" for name in object_names(target.lstrip("!")) for kind in kinds)
    found = next((references[key] for key in keys if key in references), None)
    if not titled and shown.startswith("~"):
        shown = shown.rpartition(".")[2]
    code = shown.lstrip("~!")
    return _linked(f"`{code}`" if code.strip() and "`" not in code else code, found)


def reference(target: str, references: Mapping[str, Reference], folder: str) -> Reference | None:
    """The label, page or term with this name; None if there is none."""
    name = normal_name(target)
    keys = (f"label:{name}", doc_key(target, folder), f"term:{name}")
    return next((references[key] for key in keys if key in references), None)


def link(target: str, references: Mapping[str, Reference], folder: str) -> str:
    """The address of a link, whose target may be the name of a label or page."""
    found = reference(target.removeprefix("#"), references, folder) if references else None
    return found.address if found else target


def _linked(shown: str, found: Reference | None) -> str:
    return styled("link", shown, found.address) if found else shown
