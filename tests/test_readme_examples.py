"""The examples of README, run against the real server and command line without a key."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.process import chapterverse
from tests.served import Served

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
# Sentences that answers must quote. A new example in README needs an entry.
QUOTES = {
    "What is ROS 2?": "ROS 2, the second generation of the Robot Operating System, is a set of open-source libraries",
    "What mass?": "Tern has a mass of 6 kg.",
    "What does spin do?": "The call `rclpy.spin(node)` hands control to the executor",
}
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"  # nothing is stored; no example needs a conversation


def commands(program: str) -> Iterator[list[str]]:
    """The command lines of README that call a program, split as in a shell."""
    for block in re.findall(r"^```bash\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith(f"{program} "):
                yield shlex.split(line, comments=True)


def posted(path: str) -> list[dict[str, str]]:
    """The request bodies for a path in README."""
    found = [line for line in commands("curl") if f"localhost:8000{path}" in line]
    return [json.loads(line[line.index("-d") + 1]) for line in found]


ASKED = [line[1:] for line in commands("chapterverse") if line[1] == "ask"]


def test_readme_has_examples_of_every_interface() -> None:
    assert [body.get("mode", "book") for body in posted("/chat")] == ["book", "selected_text"]
    assert len(posted("/chat/stream")) == len(posted("/search")) == 1
    assert ["--select" in line for line in ASKED] == [False, True]


@pytest.mark.parametrize("body", posted("/chat"), ids=str)
def test_chat_example_is_answered(example_server: Served, body: dict[str, str]) -> None:
    answer = example_server.http.post("/chat", json=body).raise_for_status().json()
    assert answer["status"] == "answered"
    assert any(QUOTES[body["query"]] in source["quote"] for source in answer["sources"])


@pytest.mark.parametrize("body", posted("/chat/stream"), ids=str)
def test_stream_example_is_answered(example_server: Served, body: dict[str, str]) -> None:
    stream = example_server.http.post("/chat/stream", json=body).raise_for_status().text
    sent = [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]
    sources = next(event["sources"] for event in sent if event["type"] == "sources")
    assert any(QUOTES[body["query"]] in source["quote"] for source in sources)
    assert sent[-1]["status"] == "answered"


@pytest.mark.parametrize("body", posted("/search"), ids=str)
def test_search_example_has_results(example_server: Served, body: dict[str, str]) -> None:
    assert example_server.http.post("/search", json=body).raise_for_status().json()["results"]


@pytest.mark.parametrize("arguments", ASKED, ids=str)
def test_command_line_example_is_answered(example_home: Path, arguments: list[str]) -> None:
    here = [str(ROOT / argument) if argument.startswith("examples/") else argument for argument in arguments]
    asked = chapterverse(example_home, *here, "--json", DATABASE_URL=NOWHERE)
    assert asked.returncode == 0, asked.stderr
    quotes = [source["quote"] for source in json.loads(asked.stdout)["sources"]]
    assert any(QUOTES[arguments[1]] in quote for quote in quotes)
