"""The roles of Sphinx and its extensions, for docutils. Unknown roles keep their text."""

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives, roles
from docutils.parsers.rst.languages import en as english
from docutils.utils import unescape

from chapterverse.ingestion.document import Reference
from chapterverse.ingestion.readers.sphinx.c_names import IDENTIFIER
from chapterverse.ingestion.readers.sphinx.objects import C_DOMAINS, KINDS, object_names
from chapterverse.ingestion.readers.sphinx.page import DOMAIN, DOMAINS, surroundings, words
from chapterverse.ingestion.readers.sphinx.project import doc_key
from chapterverse.ingestion.readers.sphinx.scanner import TITLED, normal_name

_ROLE_NAME = re.compile(r":([\w:.+-]{1,60}):`|`:([\w:.+-]{1,60}):")
_TAG = re.compile(r"<[^<>]{0,1000}>")
_CODE_ROLES = words(
    "attr class cls cmd const data dir enum enumerator envvar exc expr func funcparam keyword macro member meth mod "
    "obj option role struct texpr token type union var confval event concept deco"
)
# Their text names no object: `~/.profile` is shown as it is.
_LITERAL_ROLES = words(
    "command file guilabel kbd mailheader makevar menuselection mimetype newsgroup program regexp samp"
)
_ICON_ROLES = words(
    "octicon fa fab fas far material-outlined material-regular material-round material-sharp material-twotone"
)

Spoken = tuple[list[Any], list[Any]]


def link(shown: str, found: Reference | None, code: bool = False) -> nodes.Node:
    """A text with a link to its target, if that is known."""
    text: Any = nodes.literal("", shown) if code else nodes.inline("", shown)
    if found is None:
        return text  # type: ignore[no-any-return]
    return nodes.reference("", "", text, refuri=found.address)


def _say_code(name: str, raw: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any) -> Spoken:
    """A role for names in code. Of `~package.module.name`, only the last part is shown."""
    shown, target = _shown(text)
    if not target:
        target = shown
        if shown.startswith("~"):
            shown = shown.rpartition(".")[2].lstrip("~")
        if DOMAIN.sub("", name) in ("func", "meth") and not shown.endswith(")"):
            shown += "()"
    bare = DOMAIN.sub("", name)
    shown = shown.lstrip("!.")
    if bare == "deco" and not target.startswith("@"):
        shown = f"@{shown}"
    references = {} if text.startswith("!") else surroundings(inliner.document).references
    domain = name.partition(":")[0]
    if domain in C_DOMAINS:
        return [_of_c(domain, bare, shown, target, references)], []
    kind = {"dir": "directive"}.get(bare, bare if bare in KINDS else "object")
    keys = (f"{kind}:{name}" for name in object_names(target))
    found = next((references[key] for key in keys if key in references), None)
    return [link(shown, found, code=True)], []


def _say_literal(name: str, raw: str, text: str, *_: Any, **__: Any) -> Spoken:
    """A role for files, commands, keys and labels of a user interface."""
    shown, bare = unescape(text), DOMAIN.sub("", name)
    if bare in ("samp", "file"):
        shown = re.sub(r"\{([^{}]*)\}", r"\1", shown)
    elif bare == "guilabel":
        shown = re.sub(r"&(?=\S)", "", shown)
    elif bare == "menuselection":
        shown = shown.replace("-->", "\N{TRIANGULAR BULLET}")
    return [nodes.literal("", shown)], []


def _of_c(domain: str, role: str, shown: str, target: str, known: Mapping[str, Reference]) -> nodes.Node:
    """A name of C or C++, or an expression with a link for each name."""
    if role not in ("expr", "texpr"):
        keys = (f"{domain}:{name}" for name in object_names(target))
        found = next((known[key] for key in keys if key in known), None)
        return link(re.sub(r"@\w*", "[anonymous]", shown), found, code=True)
    text = nodes.literal()
    place = 0
    for name in IDENTIFIER.finditer(shown):
        text += nodes.Text(shown[place : name.start()])
        text += link(name[0], known.get(f"{domain}:{name[0]}"))
        place = name.end()
    text += nodes.Text(shown[place:])
    return text


def _say(name: str, raw: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any) -> Spoken:
    """A role for text. Shows its own title or the title of its target, with a link to the target."""
    around = surroundings(inliner.document)
    if external := around.settings.get(f"extlinks.{name}"):
        return [_external(external, text)], []
    shown, target = _shown(text)
    bare = DOMAIN.sub("", name)
    if bare == "download":
        return [nodes.reference("", "", nodes.literal("", shown), refuri=around.target(target or shown))], []
    wanted = target or shown
    if bare == "doc":
        found = around.references.get(doc_key(wanted, around.folder))
        if not target:
            shown = (found.title if found else "") or shown.rstrip("/").rpartition("/")[2].replace("-", " ")
        return [link(shown, found)], []
    key = "term:" if bare == "term" else "label:"
    found = around.references.get(f"{key}{normal_name(wanted)}")
    if not target and found and key == "label:":
        shown = found.title or shown
    return [link(shown.lstrip("!"), found)], []


def _numbered(name: str, raw: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any) -> Spoken:
    """`numref`: shows the number of a figure, table or listing, or its caption if it has no number."""
    shown, target = _shown(text)
    found = surroundings(inliner.document).references.get(f"label:{normal_name(target or shown)}")
    number, title = (found.number, found.title) if found else ("", "")
    if target:  # `Image %s <label>`
        digits = number.rpartition(" ")[2]
        shown = shown.replace("%s", digits).replace("{number}", digits).replace("{name}", title)
    return [link(shown if target else number or title or shown, found)], []


def _any(name: str, raw: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any) -> Spoken:
    """`any`: a role that looks for its target among labels, pages, terms and objects."""
    around = surroundings(inliner.document)
    shown, target = _shown(text)
    wanted = target or shown
    for key in (f"label:{normal_name(wanted)}", doc_key(wanted, around.folder), f"term:{normal_name(wanted)}"):
        if found := around.references.get(key):
            titled = not target and not key.startswith("term:") and found.title
            return [link(found.title if titled else shown, found)], []
    return _say_code(name, raw, text, lineno, inliner)


def _icon(name: str, raw: str, text: str, *_: Any, **__: Any) -> Spoken:
    return [], []


def _code(name: str, raw: str, text: str, *_: Any, **__: Any) -> Spoken:
    """`code` and roles based on it. Escapes are resolved, as in Sphinx."""
    return [nodes.literal(raw, unescape(text))], []


def _raw(
    name: str,
    raw: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Mapping[str, Any] | None = None,
    *_: Any,
    **__: Any,
) -> Spoken:
    """Roles based on `raw`: show the text of HTML, and nothing for other formats."""
    return [raw_text(unescape(text), str((options or {}).get("format", "")))], []


def raw_text(text: str, formats: str) -> nodes.Node:
    """The text of raw HTML within a sentence, with a space for a line break; empty for other formats."""
    shown = _TAG.sub("", text.replace("<br", " <br")) if "html" in formats.split() else ""
    return nodes.inline("", html.unescape(shown))


vars(_raw)["options"] = {"format": directives.unchanged}
vars(_code)["options"] = {"language": directives.unchanged}  # options of roles based on `code`
_STANDARDS = {  # text and address
    "rfc": ("RFC {0}", "https://datatracker.ietf.org/doc/html/rfc{0}.html"),
    "pep": ("PEP {0}", "https://peps.python.org/pep-{0:0>4}/"),
    "cve": ("CVE {0}", "https://www.cve.org/CVERecord?id=CVE-{0}"),
    "cwe": ("CWE {0}", "https://cwe.mitre.org/data/definitions/{0}.html"),
}


def _standard(name: str, raw: str, text: str, *_: Any, **__: Any) -> Spoken:
    shown, target = _shown(text)
    number, mark, part = (target or shown).partition("#")
    if name.lower() not in _STANDARDS:  # a role based on one of these
        return [nodes.inline(raw, shown)], []
    content, address = _STANDARDS[name.lower()]
    if not target:
        section = re.fullmatch(r"section-(\S+)", part)
        shown = content.format(number) + (f" Section {section[1]}" if section else f" {part}" if part else "")
    return [nodes.reference(raw, shown, refuri=address.format(number) + mark + part)], []


def _abbreviation(name: str, raw: str, text: str, *_: Any, **__: Any) -> Spoken:
    return [nodes.inline(raw, unescape(text))], []


def _external(setting: str, text: str) -> nodes.Node:
    """A link by a setting of the extension `extlinks`."""
    address, _, caption = setting.partition("\n")
    shown, target = _shown(text)
    part = target or shown
    if not target and "%s" in caption:
        shown = caption.replace("%s", part, 1)
    return nodes.reference("", shown, refuri=address.replace("%s", part, 1))


def _shown(text: str) -> tuple[str, str]:
    titled = TITLED.fullmatch(text)
    return (unescape(titled[1]), unescape(titled[2])) if titled else (unescape(text), "")


def _register_roles() -> set[str]:
    spoken: dict[Callable[..., Spoken], list[str]] = {
        _say_code: [*_CODE_ROLES, *(f"{domain}:{name}" for name in _CODE_ROLES for domain in DOMAINS)],
        _say_literal: [*_LITERAL_ROLES, *(f"std:{name}" for name in _LITERAL_ROLES)],
        _icon: _ICON_ROLES,
        _abbreviation: ["abbr", "abbreviation"],
        _any: ["any"],
        _numbered: ["numref", "std:numref"],
        _standard: list(_STANDARDS),
        _code: ["code"],
        _raw: ["raw"],
    }
    for role, names in spoken.items():
        for name in names:
            roles.register_local_role(name, role)
    return {name for names in spoken.values() for name in names} | set(english.roles)


_roles = _register_roles()


def prepare_roles(text: str) -> None:
    """Register every role of a text."""
    for name in {(before or after).lower() for before, after in _ROLE_NAME.findall(text)} - _roles:
        roles.register_local_role(name, _say)
        _roles.add(name)


def default_role(name: str) -> Callable[..., Spoken] | None:
    """The role for text in single backticks, by the project's setting; None for docutils' default."""
    bare = DOMAIN.sub("", name).lower()
    if bare in ("literal", "code"):
        return _say_code
    prepare_roles(f":{bare}:`")
    own: dict[str, Callable[..., Spoken]] = roles._roles  # type: ignore[attr-defined]
    standard: dict[str, Callable[..., Spoken]] = roles._role_registry  # type: ignore[attr-defined]
    return own.get("any" if bare == "autolink" else bare) or standard.get(english.roles.get(bare, "")) if bare else None
