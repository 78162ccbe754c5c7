"""Names and anchors of C and C++ objects in Sphinx.

The anchors of C++ objects are mangled names, as in compilers: `Data::size(int) const` has `_CPPv4NK4Data4sizeEi`.
Concepts, operators, packs and arrays are not supported: a reference to such an object links to its page.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

IDENTIFIER: Final = re.compile(r"[A-Za-z_@]\w{0,200}(?:(?:::|\.)[A-Za-z_@]\w{0,200}){0,20}")
_NAME = r"[A-Za-z_@~]\w{0,200}(?:<[^<>]{0,200}>)?"
_NAMED_LAST = re.compile(rf"(?:^|[\s*&>])({_NAME}(?:(?:::|\.){_NAME}){{0,20}})$")
_TEMPLATE = re.compile(r"template ?<([^<>]{0,500})> ?")
_AFTER_NAME = re.compile(r"[=\[{(]|(?<!:):(?!:)")
_TOKEN = re.compile(rf"{_NAME}(?:::{_NAME}){{0,20}}|&&|\S")
_FUNDAMENTAL: Final = {
    "void": "v", "bool": "b", "char": "c", "signed char": "a", "unsigned char": "h", "wchar_t": "w", "short": "s",
    "unsigned short": "t", "int": "i", "unsigned": "j", "unsigned int": "j", "long": "l", "unsigned long": "m",
    "long long": "x", "unsigned long long": "y", "float": "f", "double": "d", "long double": "e", "auto": "Da",
}  # fmt: skip
_FUNDAMENTAL_WORDS: Final = {word for name in _FUNDAMENTAL for word in name.split()}
_DECORATION: Final = {"*": "P", "&": "R", "&&": "RR", "const": "K", "volatile": "V"}


class _Unknown(Exception):
    """The signature is not supported."""


def described(domain: str, signature: str, scope: str) -> tuple[list[str], str]:
    """The names of an object, the full one first, and its anchor, which is empty if the object is not supported."""
    separator = "::" if domain == "cpp" else "."
    bare, template = re.sub(r"\s+", " ", signature).strip(), None
    while begin := _TEMPLATE.match(bare):
        bare, template = bare[begin.end() :], begin[1]
    found = _NAMED_LAST.search(_AFTER_NAME.split(bare, maxsplit=1)[0].strip())
    if not found:
        return [], ""
    full = f"{scope}{separator}{found[1]}" if scope else found[1]
    parts = full.split(separator)
    seen = [part for part in parts if not part.startswith("@")]  # anonymous parts may be left out
    names = [full, separator.join(seen), separator.join(parts[-2:]), parts[-1]]
    try:
        anchor = f"c.{full}" if domain == "c" else _cpp_anchor(bare, template, parts)
    except _Unknown:
        anchor = ""
    return list(dict.fromkeys(names)), anchor


def _cpp_anchor(signature: str, template: str | None, parts: Sequence[str]) -> str:
    begin = re.search(r"[=\[{(]", signature)
    is_function = begin is not None and begin[0] == "("
    if re.match(r"\S*\{", signature) or "operator" in signature or (is_function and template is not None):
        raise _Unknown(signature)
    inside, _, after = signature[begin.end() :].rpartition(")") if begin else ("", "", "")
    arguments = ("".join(_type(argument) for argument in _arguments(inside)) or "v") if is_function else ""
    is_const = is_function and after.split()[:1] == ["const"]
    prefix = "" if template is None else f"I{''.join(_parameter(argument) for argument in _arguments(template))}E"
    return f"_CPPv4{prefix}{_nested(parts, 'K' if is_const else '')}{arguments}"


def _parameter(text: str) -> str:
    """Mangle a template parameter: a type, or a value of a type."""
    return "0" if re.match(r"(?:typename|class)\b(?! ?\.\.\.)", text) else f"_{_type(text)}"


def _nested(parts: Sequence[str], modifiers: str = "") -> str:
    ids = "".join(_identifier(part) for part in parts)
    return f"N{modifiers}{ids}E" if len(parts) > 1 or modifiers else ids


def _identifier(name: str) -> str:
    if name.startswith("@"):
        return f"Ut{len(name) - 1}_{name[1:]}"
    if name.endswith(">"):
        bare, _, inside = name[:-1].partition("<")
        return f"{_identifier(bare)}I{''.join(_type(argument) for argument in _arguments(inside))}E"
    return "St" if name == "std" else f"{len(name)}{name}"


def _arguments(text: str) -> Iterator[str]:
    """Split a list of parameters at its commas, and remove default values."""
    depth, begin = 0, 0
    for place, sign in enumerate(f"{text},"):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            if one := text[begin:place].partition("=")[0].strip():
                yield one
            begin = place + 1


def _type(text: str) -> str:
    """Mangle a type, which may be followed by the name of a parameter."""
    words: list[str] = []
    before = after = ""
    for word in _TOKEN.findall(text):
        if word == "const" and after:
            after = f"{after[0]}C{after[1:]}"  # qualifies the pointer
        elif word in ("const", "volatile") and not after:
            before += _DECORATION[word]
        elif word in _DECORATION:
            after = _DECORATION[word] + after
        elif not re.match(r"\w", word):
            raise _Unknown(word)
        elif not after and (not words or (words[-1] in _FUNDAMENTAL_WORDS and word in _FUNDAMENTAL_WORDS)):
            words.append(word)
    name = " ".join(words)
    if not name or (words[0] in _FUNDAMENTAL_WORDS and name not in _FUNDAMENTAL):
        raise _Unknown(text)
    return after + before + (_FUNDAMENTAL.get(name) or _nested(name.split("::")))
