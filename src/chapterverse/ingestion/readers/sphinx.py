"""What Sphinx and its extensions add to reStructuredText: directives and roles, as docutils must see them.

Owns their registration with docutils. Never includes a file, imports a module or runs a program, which is what many of
them do in Sphinx: those are left out. Names nobody knows keep their text.
"""

import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.languages import en as english

from chapterverse.ingestion.readers.marks import ADMONITIONS

_DIRECTIVE_NAME = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:.+-]{1,60})[ \t]*::", re.MULTILINE)
_ROLE_NAME = re.compile(r":([\w:.+-]{1,60}):`|`:([\w:.+-]{1,60}):")
_TITLED = re.compile(r"(.+?)\s*(?<!\\)<([^<>]+)>", re.DOTALL)


def _words(text: str) -> list[str]:
    return text.split()


_PROGRAMS = _words("code code-block sourcecode testcode testoutput doctest prompt highlight-block parsed-literal")
_LEFT_OUT = _words(
    "autoattribute autoclass autodata autoexception autofunction automethod automodule autoproperty autosummary "
    "bibliography button-link button-ref centered click codeauthor contents currentmodule default-domain "
    "graphviz highlight ifconfig include index inheritance-diagram literalinclude mermaid meta module plot "
    "py:currentmodule py:module query-param-ref raw redirect-from sectionauthor sectnum tabularcolumns target-notes "
    "testcleanup testsetup toctree uml"
)
_LABELLED = _words("card dropdown grid-item-card group-tab tab tab-item tabbed collapse details")
_OBJECTS = _words("attribute class data describe exception function method option confval envvar")
_SPELLED_ROLES = _words(
    "attr class cls cmd command const data envvar exc file func guilabel kbd menuselection meth mod obj option program "
    "makevar samp type var"
)


class _AnyOption(dict[str, Any]):
    """Accepts every option; docutils would otherwise drop a directive for one it does not know."""

    def __missing__(self, key: str) -> Any:
        return directives.unchanged


class _Body(Directive):
    """Keeps the body as if it stood outside the directive."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = _AnyOption(name=directives.unchanged)

    def run(self) -> list[nodes.Node]:
        return self._parsed(nodes.container()).children

    def _parsed(self, node: nodes.Element) -> nodes.Element:
        self.state.nested_parse(self.content, self.content_offset, node)
        return node

    def _argument(self) -> str:
        """What follows the directive's name, on one line."""
        return " ".join(" ".join(self.arguments).split())

    def _spoken(self, text: str) -> nodes.paragraph:
        return nodes.paragraph("", "", *self.state.inline_text(text, self.lineno)[0])


class _LeftOut(_Body):
    def run(self) -> list[nodes.Node]:
        return []


class _Program(_Body):
    def run(self) -> list[nodes.Node]:
        language = "" if self.name == "parsed-literal" else self._argument().split(" ")[0]
        if self.name in ("testcode", "doctest"):  # the argument is a group of tests
            language = "python"
        given = "\n".join(self.arguments).split("\n")  # code right below the name, which Sphinx would not take
        lines = [*(given if self.name == "parsed-literal" else given[1:]), *self.content]
        return [nodes.literal_block(text="\n".join(lines), language=language)]


class _CodeTab(_Program):
    def run(self) -> list[nodes.Node]:
        label = self._argument().partition(" ")[2]
        return [*([nodes.paragraph(text=f"{label}:")] if label else []), *super().run()]


class _Labelled(_Body):
    def run(self) -> list[nodes.Node]:
        label = [self._spoken(f"{self._argument()}:")] if self.arguments else []
        return [*label, *super().run()]


class _Object(_Body):
    """A described function or class: its signature, then its text."""

    def run(self) -> list[nodes.Node]:
        signature = nodes.paragraph("", "", nodes.literal(text=self._argument()))
        return [signature, *super().run()]


class _Version(_Body):
    def run(self) -> list[nodes.Node]:
        version, _, rest = self._argument().partition(" ")
        node = nodes.admonition(label=f"{ADMONITIONS[self.name]} {version}")
        if rest:
            node += self._spoken(rest)
        return [self._parsed(node)]


class _SeeAlso(_Body):
    def run(self) -> list[nodes.Node]:
        node = nodes.admonition(label=ADMONITIONS.get(self.name, "Note"))
        if self.arguments:
            node += self._spoken(self._argument())
        return [self._parsed(node)]


def _spell(name: str, raw: str, text: str, *_: Any) -> tuple[list[Any], list[Any]]:
    """A role for names in programs: `~package.module.name` shows as its last part."""
    shown, target = _shown(text)
    if not target and shown.startswith("~"):
        shown = shown.rpartition(".")[2].lstrip("~")
    return [nodes.literal(raw, shown.lstrip("!"))], []


def _say(name: str, raw: str, text: str, *_: Any) -> tuple[list[Any], list[Any]]:
    """A role for words: its title, or what its target says by itself."""
    shown, target = _shown(text)
    if name == "doc" and not target:
        shown = shown.rstrip("/").rpartition("/")[2].replace("-", " ")
    return [nodes.inline(raw, shown.lstrip("!"))], []


def _shown(text: str) -> tuple[str, str]:
    text = text.replace("\0", "")  # docutils marks escapes so
    titled = _TITLED.fullmatch(text)
    return (titled[1], titled[2]) if titled else (text, "")


def _register_directives() -> set[str]:
    kinds: dict[type[Directive], list[str]] = {
        _LeftOut: _LEFT_OUT,
        _Program: _PROGRAMS,
        _CodeTab: ["code-tab"],
        _Labelled: _LABELLED,
        _Object: [f"{domain}:{name}" for name in _OBJECTS for domain in ("py", "c", "cpp", "js", "rst", "std")],
        _Version: ["versionadded", "versionchanged", "deprecated", "versionremoved"],
        _SeeAlso: ["seealso", "todo"],
    }
    for kind, names in kinds.items():
        for name in names:
            directives.register_directive(name, kind)
    return {name for names in kinds.values() for name in names} | set(english.directives)


def _register_roles() -> set[str]:
    for name in _SPELLED_ROLES:
        for spelling in (name, f"py:{name}", f"c:{name}", f"cpp:{name}"):
            roles.register_local_role(spelling, _spell)
    return set(english.roles)


_directives = _register_directives()
_roles = _register_roles()


def prepare(text: str) -> None:
    """Makes docutils understand every directive and role that a text uses: unknown ones keep their text."""
    for name in {found.lower() for found in _DIRECTIVE_NAME.findall(text)} - _directives:
        directives.register_directive(name, _Body)
        _directives.add(name)
    for name in {(before or after).lower() for before, after in _ROLE_NAME.findall(text)} - _roles:
        if name not in _SPELLED_ROLES and name.partition(":")[2] not in _SPELLED_ROLES:
            roles.register_local_role(name, _say)
        _roles.add(name)
