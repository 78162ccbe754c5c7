"""Names and anchors of the objects that a Sphinx project describes: functions, options, directives and the like."""

import re
from collections.abc import Sequence
from typing import Final

from chapterverse.ingestion.readers.sphinx import c_names

OBJECT: Final = re.compile(
    r"(?:(?:py|c|cpp|js|rst|std):)?(?:(?:coroutine|awaitable)?function|class|"
    r"(?:coroutine|awaitable|abstract|class|static|decorator)?method|attribute|property|exception|data|decorator|module|type|member|macro|struct|union|enum|enum-class|enum-struct|enumerator|var|concept|"
    r"directive|directive:option|role|confval|option|cmdoption|envvar|event|describe|object)"
)
NAMESPACE: Final = re.compile(r"(c|cpp):namespace(-push|-pop)?")
KINDS: Final = ("object", "confval", "envvar", "event", "directive", "role", "option")
C_DOMAINS: Final = ("c", "cpp")
_DOMAIN = re.compile(r"^(py|c|cpp|js|rst|std):")
_UNSAFE_ID = re.compile(r"[^a-zA-Z0-9._]+")


def object_name(name: str) -> str:
    """The name of an object in references: without arguments and prefix."""
    return name.strip().lstrip("~!.").partition("(")[0].strip().rstrip(":")


def object_names(target: str) -> tuple[str, ...]:
    """The possible names of a role's target: the target and its last word, each also without arguments and prefix."""
    last = target.rsplit(maxsplit=1)[-1] if target.split() else ""
    return tuple(dict.fromkeys(filter(None, (target, object_name(target), object_name(last), last))))


def sphinx_id(kind: str, name: str) -> str:
    """The anchor that Sphinx generates for an object; the case of letters is kept."""
    return _UNSAFE_ID.sub("-", " ".join(f"{kind}-{name}".split())).strip("-")


class Objects:
    """Collects the objects of one file, directive by directive."""

    def __init__(self, found: dict[str, str]) -> None:
        """`found`: the dict to which the anchor of each object is added, by `kind:name`."""
        self._found = found
        self._classes: list[tuple[int, str]] = []  # indent and name of the open objects
        self._scopes: list[tuple[int, str]] = []  # the same for C and C++
        self._namespaces: list[str] = []  # of C and C++
        self._whole: set[str] = set()  # keys of C and C++ objects that use the full name
        self.module = ""
        self.program = ""

    def enter(self, directive: str, name: str) -> None:
        """Read a directive that sets, starts or ends a namespace of C or C++."""
        found = NAMESPACE.fullmatch(directive)
        separator = "::" if found and found[1] == "cpp" else "."
        if directive.endswith("-pop"):
            self._namespaces = self._namespaces[:-1]
        elif directive.endswith("-push"):
            self._namespaces.append(separator.join([*self._namespaces[-1:], name]))
        else:
            self._namespaces = [] if name in ("NULL", "0", "nullptr") else [name]

    def describe(self, directive: str, signatures: Sequence[str], indent: int) -> None:
        """Add the objects that a directive describes."""
        kind, domain = _DOMAIN.sub("", directive), (_DOMAIN.match(directive) or ("", ""))[1]
        if kind == "module":
            self.module = signatures[0]
        for around in (self._classes, self._scopes):
            while around and around[-1][0] >= indent:
                around.pop()
        if domain in C_DOMAINS:
            self._of_c(domain, signatures, indent)
            return
        for signature in signatures:
            self._describe(kind, signature, indent)

    def _describe(self, kind: str, signature: str, indent: int) -> None:
        name = object_name(signature)
        if kind in ("option", "cmdoption"):
            self._option(signature)
        elif kind == "directive:option" and self._classes:
            name = name.strip(":").partition(":")[0]
            self._put("directive", f"{self._classes[-1][1]}:{name}", f"directive-option-{self._classes[-1][1]}-{name}")
        elif kind in ("directive", "role"):
            name = name.removeprefix("..").partition("::")[0].strip().strip(":").partition(" ")[0]
            self._put(kind, name, f"{kind}-{name}")
            if not self._classes or self._classes[-1][0] < indent:  # options belong to the first name
                self._classes.append((indent, name))
        elif kind in KINDS:
            self._put(kind, name.partition(" ")[0], f"{kind}-{name.partition(' ')[0]}")
        else:
            self._of_language(kind, name, indent)

    def _option(self, signature: str) -> None:
        """Add a command-line option; all its spellings have the anchor of the first one."""
        names = [re.split(r"[ =\[]", option.strip(), maxsplit=1)[0] for option in signature.split(", ")]
        anchor = f"cmdoption-{self.program}-{names[0]}" if self.program else f"cmdoption-{names[0]}"
        for name in filter(None, names):
            self._put("option", f"{self.program} {name}".strip(), anchor)
            self._put("option", name, anchor)

    def _of_language(self, kind: str, name: str, indent: int) -> None:
        """Add a function, class or other object of a programming language."""
        bare = name.rsplit(maxsplit=1)[-1].lstrip("*&") if name.split() else ""
        inside = f"{self._classes[-1][1]}." if self._classes else f"{self.module}." if self.module else ""
        full = bare if bare.startswith(inside) or kind == "module" else f"{inside}{bare}"
        if kind in ("class", "exception", "struct", "union", "enum"):
            self._classes.append((indent, full))
        anchor = f"module-{full}" if kind == "module" else full
        for known in (full, ".".join(full.split(".")[-2:]), bare):
            self._found.setdefault(f"object:{known}", anchor)

    def _of_c(self, domain: str, signatures: Sequence[str], indent: int) -> None:
        """Add the objects of a C or C++ directive; objects inside of the directive become members of the first one."""
        scope = self._scopes[-1][1] if self._scopes else "".join(self._namespaces[-1:])
        described = [c_names.described(domain, signature, scope) for signature in signatures]
        for names, anchor in described:
            for name in names[:1]:
                key = f"{domain}:{name}"
                if key not in self._whole:  # if several objects have the same name, the first one is used
                    self._found[key] = anchor
                self._whole.add(key)
            for name in names[1:]:
                self._found.setdefault(f"{domain}:{name}", anchor)
        if described[0][0]:
            self._scopes.append((indent, described[0][0][0]))

    def _put(self, kind: str, name: str, anchor: str) -> None:
        if name:
            self._found.setdefault(f"{kind}:{name}", sphinx_id("", anchor))
