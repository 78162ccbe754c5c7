"""Writes the equations of Word documents (OMML) as TeX."""

from collections.abc import Callable, Iterator
from typing import Final
from xml.etree.ElementTree import Element

from chapterverse.ingestion.inline import remove_private

_BRACE_ABOVE: Final = "\u23de"
_BRACE_BELOW: Final = "\u23df"
_OPERATOR: Final = "∫"  # of an `nary` element that names none
_ACCENTS: Final = {
    "\u0300": "grave",
    "\u0301": "acute",
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "bar",
    "\u0306": "breve",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u030c": "check",
    "\u20d7": "vec",
}  # names in TeX
_PROPERTY: Final = "Pr"  # elements with this ending have no text


def tex_of(node: Element) -> str:
    """The TeX of an equation or of a part of it. Symbols stay as they are in the document."""
    if node.tag == "t":
        return remove_private(node.text or "")
    if node.tag in _WRITERS:
        return _WRITERS[node.tag](node)
    return "".join(tex_of(child) for child in node if not child.tag.endswith(_PROPERTY))


def _root(node: Element) -> str:
    degree = _part(node, "deg")
    return f"\\sqrt{f'[{degree}]' if degree else ''}{{{_part(node, 'e')}}}"


def _delimited(node: Element) -> str:
    inside = _property(node, "sepChr", "|").join(_parts(node, "e"))
    return f"{_property(node, 'begChr', '(')}{inside}{_property(node, 'endChr', ')')}"


def _matrix(node: Element) -> str:
    rows = (" & ".join(_parts(row, "e")) for row in node.findall("mr"))
    return "\\begin{matrix}" + " \\\\ ".join(rows) + "\\end{matrix}"


def _accented(node: Element) -> str:
    accent, inside = _property(node, "chr", "\u0302"), _part(node, "e")
    return f"\\{_ACCENTS[accent]}{{{inside}}}" if accent in _ACCENTS else f"{inside}{accent}"


def _lined(node: Element) -> str:
    line = "overline" if _property(node, "pos", "bot") == "top" else "underline"
    return f"\\{line}{{{_part(node, 'e')}}}"


def _grouped(node: Element) -> str:
    """A part with a sign above or below it, such as a brace or an arrow."""
    sign, inside = _property(node, "chr", _BRACE_BELOW), _part(node, "e")
    if sign in (_BRACE_ABOVE, _BRACE_BELOW):
        return f"\\{'overbrace' if sign == _BRACE_ABOVE else 'underbrace'}{{{inside}}}"
    side = "overset" if _property(node, "pos", "bot") == "top" else "underset"
    return f"\\{side}{{{sign}}}{{{inside}}}"


def _parts(node: Element, tag: str) -> Iterator[str]:
    return (tex_of(child).strip() for child in node.findall(tag))


def _part(node: Element, tag: str) -> str:
    return "".join(_parts(node, tag))


def _scripts(node: Element) -> str:
    below, above = _part(node, "sub"), _part(node, "sup")
    return f"{f'_{_braced(below)}' if below else ''}{f'^{_braced(above)}' if above else ''}"


def _braced(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


def _property(node: Element, name: str, default: str) -> str:
    found = node.find(f"{node.tag}Pr/{name}")
    return default if found is None else found.get("val", "")


_WRITERS: Final[dict[str, Callable[[Element], str]]] = {
    "f": lambda node: f"\\frac{{{_part(node, 'num')}}}{{{_part(node, 'den')}}}",
    "rad": _root,
    "sSub": lambda node: f"{_part(node, 'e')}{_scripts(node)}",
    "sSup": lambda node: f"{_part(node, 'e')}{_scripts(node)}",
    "sSubSup": lambda node: f"{_part(node, 'e')}{_scripts(node)}",
    "sPre": lambda node: f"{{}}{_scripts(node)}{_part(node, 'e')}",
    "nary": lambda node: f"{_property(node, 'chr', _OPERATOR)}{_scripts(node)} {_part(node, 'e')}",
    "limLow": lambda node: f"{_part(node, 'e')}_{_braced(_part(node, 'lim'))}",
    "limUpp": lambda node: f"{_part(node, 'e')}^{_braced(_part(node, 'lim'))}",
    "acc": _accented,
    "bar": _lined,
    "groupChr": _grouped,
    "d": _delimited,
    "m": _matrix,
    "eqArr": lambda node: " \\\\ ".join(_parts(node, "e")),
    "func": lambda node: f"{_part(node, 'fName')} {_part(node, 'e')}",
}
