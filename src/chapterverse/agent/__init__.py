"""The agent: one question with its passages goes in, what the model writes comes out as it is written.

Owns the run of a language model through the Agents SDK. What comes out is raw: nothing here checks a sentence.
`agents` and `openai` are imported here and in `extractive`, and nowhere else; and not before something is run or
opened, because they take longer to import than everything else together.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chapterverse.agent.task import (
    Finished,
    LanguageModel,
    Rewritten,
    Search,
    Searched,
    Stopped,
    Task,
    Wrote,
)
from chapterverse.transcript import Exchange, IssuedPassage

if TYPE_CHECKING:
    from chapterverse.agent.providers import open_extractive, open_gemini, open_openai
    from chapterverse.agent.rewriting import rewrite
    from chapterverse.agent.run import run_agent

__all__ = [
    "Exchange",
    "Finished",
    "IssuedPassage",
    "LanguageModel",
    "Rewritten",
    "Search",
    "Searched",
    "Stopped",
    "Task",
    "Wrote",
    "open_extractive",
    "open_gemini",
    "open_openai",
    "rewrite",
    "run_agent",
]

_RUNNING = {
    "open_extractive": "providers",
    "open_gemini": "providers",
    "open_openai": "providers",
    "rewrite": "rewriting",
    "run_agent": "run",
}


def __getattr__(name: str) -> Any:
    if name not in _RUNNING:
        raise AttributeError(name)
    import_module("chapterverse.agent.lean")
    globals()[name] = getattr(import_module(f"chapterverse.agent.{_RUNNING[name]}"), name)
    return globals()[name]
