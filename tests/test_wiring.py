"""The writer and the judge that the settings select."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.evidence.judge import ModelJudge
from chapterverse.settings import Settings
from chapterverse.wiring import choose_judge, choose_writer
from chapterverse.writing.agent import AgentWriter

OPENAI = {"openai_api_key": "writer-key", "openai_model": "writer", "openai_base_url": "http://writer.example/v1"}


def judge_of(**settings: object) -> ModelJudge | None:
    judge = choose_judge(Settings.load(**settings))
    assert judge is None or isinstance(judge, ModelJudge)
    return judge


def test_judge_is_the_writing_model_by_default() -> None:
    judge = judge_of(**OPENAI)
    assert judge is not None
    assert (judge.name, judge.base_url, judge.api_key) == ("writer", "http://writer.example/v1", "writer-key")
    other = judge_of(**OPENAI, judge_model="judge")
    assert other is not None
    assert (other.name, other.base_url, other.api_key) == ("judge", "http://writer.example/v1", "writer-key")


def test_key_is_not_sent_to_another_server() -> None:
    judge = judge_of(**OPENAI, judge_model="judge", judge_base_url="http://judge.example/v1")
    assert judge is not None
    assert judge.api_key == ""
    own = judge_of(**OPENAI, judge_base_url="http://judge.example/v1", judge_api_key="judge-key")
    assert own is not None
    assert (own.name, own.api_key) == ("writer", "judge-key")
    same = judge_of(**OPENAI, judge_base_url="http://writer.example/v1/")
    assert same is not None
    assert same.api_key == "writer-key"


@pytest.mark.parametrize("off", ["off", "OFF", "0", "false", "no"])
def test_judge_can_be_turned_off(off: str) -> None:
    assert judge_of(**OPENAI, judge=off) is None
    assert judge_of() is None


def test_gemini_can_be_the_judge() -> None:
    judge = judge_of(gemini_api_key="key")
    assert judge is not None
    assert judge.fields == {"temperature": None, "reasoning_effort": "low", "store": None}


def test_excerpt_writer_is_used_without_a_key() -> None:
    writer, why = choose_writer(Settings.load())
    assert writer.name == "excerpt"
    assert "OPENAI_API_KEY" in why


def test_agent_prompt_is_read_from_a_file(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    with pytest.raises(ConfigurationError, match="AGENT_PROMPT"):
        Settings.load(agent_prompt=prompt)
    prompt.write_text("Write as a pirate.", "utf-8")
    writer, _ = choose_writer(Settings.load(**OPENAI, agent_prompt=prompt))
    assert isinstance(writer, AgentWriter)
    assert writer.options.prompt == "Write as a pirate."


@pytest.mark.parametrize(
    ("given", "missing"),
    [({"judge_model": "judge"}, "JUDGE_BASE_URL"), ({"judge_base_url": "http://judge.example/v1"}, "JUDGE_MODEL")],
)
def test_half_a_judge_is_an_error(given: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{missing}: must be set"):
        judge_of(**given)
    assert judge_of(**given, judge="off") is None


@pytest.mark.parametrize("judge", ["maybe", "2"])
def test_invalid_judge_setting_raises_an_error(judge: str) -> None:
    with pytest.raises(ConfigurationError, match="JUDGE"):
        Settings.load(judge=judge)


def test_check_engines_does_not_import_the_agents_library(tmp_path: Path) -> None:
    # Importing it takes half of the start of a server; index and database can start at the same time.
    script = (
        "import asyncio, sys; from chapterverse.settings import Settings; "
        "from chapterverse.wiring import check_engines; "
        "asyncio.run(check_engines(Settings.load())); print('agents' in sys.modules)"
    )
    settings = {"GEMINI_API_KEY": "key", "CHAPTERVERSE_HOME": str(tmp_path)}
    shown = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert shown.stdout == "False\n", shown.stderr
