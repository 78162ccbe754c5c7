"""Imports the Agents SDK without the MCP SDK, which takes a quarter of a server's start and is not needed for it.

The SDK wants of it the class of one error, for MCP servers that we never give it. While the SDK is imported, a module
with such a class stands in, unless the MCP SDK is loaded already; afterwards whoever needs the real one gets it.
"""

import sys
from types import ModuleType
from typing import Final

_WANTED: Final = "mcp.shared.exceptions"


def _import_sdk() -> None:
    stand_in = ModuleType(_WANTED)
    stand_in.MCPError = type("MCPError", (Exception,), {})  # type: ignore[attr-defined]
    sys.modules.setdefault(_WANTED, stand_in)
    try:
        import agents  # noqa: F401
    finally:
        if sys.modules.get(_WANTED) is stand_in:
            del sys.modules[_WANTED]


_import_sdk()
