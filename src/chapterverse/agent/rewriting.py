"""A follow-up as a question that stands alone, in a model's words.

Owns the one short call that this takes. Never searches and never answers; when the model fails or is slow the caller
goes on with the rules of `followups`.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, cast

from agents import Agent, RunConfig, Runner, TResponseInputItem

from chapterverse.agent.failures import VENDOR_FAULTS
from chapterverse.agent.task import LanguageModel, Rewritten
from chapterverse.prompts import STANDALONE
from chapterverse.transcript import Exchange, render_history

REWRITE_SECONDS: Final = 3.0  # a reader waits for it before anything else happens
_LONGEST: Final = 300  # characters; more is no question
_HISTORY_TOKENS: Final = 2000

log = logging.getLogger(__name__)


async def rewrite(question: str, history: Sequence[Exchange], model: LanguageModel) -> Rewritten:
    """Ask the model once; whatever goes wrong, there is just no question in its words."""
    agent: Agent[Any] = Agent(
        name="chapterverse", instructions=STANDALONE, model=model.model, model_settings=model.settings
    )
    items = [*render_history(history, _HISTORY_TOKENS), {"role": "user", "content": question}]
    try:
        async with asyncio.timeout(REWRITE_SECONDS):
            run = await Runner.run(
                agent,
                cast(list[TResponseInputItem], items),
                max_turns=1,
                run_config=RunConfig(tracing_disabled=True),
            )
    except (TimeoutError, *VENDOR_FAULTS) as fault:
        log.info("the model did not rewrite a follow-up: %s", type(fault).__name__)
        return Rewritten("")
    said = " ".join(str(run.final_output).split()).strip("\"'“”")
    usage = run.context_wrapper.usage
    kept = said if len(said) <= _LONGEST else ""
    return Rewritten(kept, usage.total_tokens, tokens_written=usage.output_tokens)
