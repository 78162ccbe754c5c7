"""Print requirements.lock: every installed distribution that the project needs, by exact version and without addresses.

Walks from the dependencies of the project and of its extras, so that what was installed by hand is left out.
"""

import sys
import tomllib
from importlib.metadata import distribution
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def main() -> None:
    """Walk the dependencies and print them sorted."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += chain.from_iterable(project["project"]["optional-dependencies"].values())
    pinned: dict[str, str] = {}
    todo = [(Requirement(text), frozenset[str]()) for text in wanted]
    while todo:
        requirement, extras = todo.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in extras | {""}):
            continue
        name = canonicalize_name(requirement.name)
        if name == "pip" or (name in pinned and not requirement.extras):
            continue  # pip comes with the interpreter, and an older one than its own would break it
        found = distribution(requirement.name)
        pinned[name] = found.version
        todo += [(Requirement(text), frozenset(requirement.extras)) for text in found.requires or []]
    sys.stdout.write("# Written by `make lock`: exact versions, no addresses. Developers' tools are in it too.\n")
    sys.stdout.writelines(f"{name}=={version}\n" for name, version in sorted(pinned.items()))


if __name__ == "__main__":
    main()
