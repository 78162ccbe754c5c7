"""The agent: one question with its passages goes in, what the model writes comes out as it is written.

Owns the run of a language model through the Agents SDK. What comes out is raw: nothing here checks a sentence.
`agents` and `openai` are imported here and in `extractive`, and nowhere else.
"""

from chapterverse.agent.providers import open_extractive, open_gemini, open_openai
from chapterverse.agent.rewriting import Rewritten, rewrite
from chapterverse.agent.run import run_agent
from chapterverse.agent.task import Finished, LanguageModel, Search, Searched, Stopped, Task, Wrote
from chapterverse.transcript import Exchange, IssuedPassage

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
