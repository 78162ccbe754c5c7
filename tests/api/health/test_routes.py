"""`/health` over real HTTP: what it says of a model that only seems to work, of engines in use, and to whom."""

from pathlib import Path
from typing import Any

import pytest

from chapterverse.health import REMEMBER_SECONDS
from chapterverse.settings import Settings
from tests.llm_stub import Fails, LlmStub, Raw, Says, serving_llm
from tests.served import Served, serve

pytestmark = pytest.mark.slow

QUESTION = {"query": "What is ROS 2?"}


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert REMEMBER_SECONDS > 0
    monkeypatch.setattr("chapterverse.health.REMEMBER_SECONDS", 0.0)


def is_up(server: Served, name: str = "llm") -> None:
    """All is well, and the model is up."""
    health = server.health(lambda said: said["status"] == "healthy")
    assert (health["services"][name]["status"], health["services"][name]["message"]) == ("up", None)


def is_down(server: Served, status: str, why: str = "", name: str = "llm") -> None:
    """The model is down, for a reason that begins so, and this is the state of the whole."""

    def wanted(health: dict[str, Any]) -> bool:
        model = health["services"][name]
        return (health["status"], model["status"]) == (status, "down") and str(model["message"]).startswith(why)

    server.health(wanted)


def test_a_model_whose_answers_fail_is_down_until_one_succeeds(example_home: Path, postgres_url: str) -> None:
    with serving_llm() as llm:
        settings = Settings.load(
            chapterverse_home=example_home, database_url=postgres_url, openai_api_key="k", openai_base_url=llm.url
        )
        with serve(settings) as server:
            is_up(server)
            llm.usual = Fails(401)
            assert server.http.post("/chat", json=QUESTION).status_code == 503
            is_down(server, "unhealthy", "The last answer failed: ")
            llm.usual = Says("Fine.")
            server.http.post("/chat", json=QUESTION)
            is_up(server)
            llm.usual = Fails(401)
            server.http.post("/chat", json=QUESTION)
            is_down(server, "unhealthy", "The last answer failed: ")
            # So that questions still arrive, and the next tells.
            assert server.http.get("/readyz").status_code == 200
            llm.usual = Says("Fine.")
            server.http.post("/chat", json=QUESTION)
            is_up(server)


def test_a_server_that_went_and_came_back_is_up_when_it_has_answered(example_home: Path, postgres_url: str) -> None:
    with serving_llm() as llm:
        settings = Settings.load(
            chapterverse_home=example_home, database_url=postgres_url, openai_api_key="k", openai_base_url=llm.url
        )
        with serve(settings) as server:
            llm.models = Fails(500)
            is_down(server, "unhealthy")
            llm.models = None
            is_up(server)  # no answer failed
            llm.usual = llm.models = Fails(500)
            assert server.http.post("/chat", json=QUESTION).status_code == 503
            is_down(server, "unhealthy")
            llm.usual, llm.models = Says("Fine."), None
            is_down(server, "unhealthy", "The last answer failed: ")
            server.http.post("/chat", json=QUESTION)
            is_up(server)


def with_a_judge(home: Path, database: str, llm: LlmStub, judge: LlmStub) -> Settings:
    """One server writes, another one judges."""
    return Settings.load(
        chapterverse_home=home,
        database_url=database,
        openai_api_key="k",
        openai_base_url=llm.url,
        judge_base_url=judge.url,
    )


@pytest.mark.parametrize(
    ("mode", "why"), [("fails", "the judge answered HTTP 500"), ("prose", "the judge gave no verdict that can be read")]
)
def test_a_judge_whose_calls_fail_is_down_and_the_model_that_writes_is_not(
    example_home: Path, postgres_url: str, mode: str, why: str
) -> None:
    with serving_llm() as llm, serving_llm() as other:
        settings = with_a_judge(example_home, postgres_url, llm, other)
        claim = "ROS 2 is what people use who build robots"
        llm.usual = Says(f"{claim} [1.1].")
        other.judge.truths.add(claim)
        with serve(settings) as server:
            is_up(server, "judge")
            other.judge.mode = mode
            # Answers go on, in the book's words.
            assert server.http.post("/chat", json=QUESTION).status_code == 200
            is_down(server, "degraded", f"The last check of an answer failed: {why}", "judge")
            other.judge.mode = "right"
            server.http.post("/chat", json=QUESTION)
            is_up(server, "judge")
            other.judge.mode = mode
            server.http.post("/chat", json=QUESTION)
            is_down(server, "degraded", "The last check of an answer failed: ", "judge")
            other.judge.mode = "right"
            server.http.post("/chat", json=QUESTION)
            is_up(server, "judge")


@pytest.mark.parametrize("models", [Fails(500), Raw(b"<p>Welcome</p>"), Raw(b"[]", "application/json")])
def test_a_judge_that_cannot_be_reached_is_down(example_home: Path, postgres_url: str, models: Fails | Raw) -> None:
    with serving_llm() as llm, serving_llm() as other:
        settings = with_a_judge(example_home, postgres_url, llm, other)
        with serve(settings) as server:
            other.models = models
            is_down(server, "degraded", name="judge")
            other.models = Fails(404)
            is_up(server, "judge")


def test_only_engines_in_use_are_named(example_server: Served) -> None:
    services = example_server.http.get("/health").json()["services"]
    assert services.keys() == {"qdrant", "embeddings", "llm", "database"}


def test_paths_and_addresses_are_for_callers_with_a_key(example_home: Path, tmp_path: Path) -> None:
    gone = "http://10.255.255.1:6333"
    for settings, place in (
        (Settings.load(chapterverse_home=example_home, api_keys="secret-key"), str(example_home)),
        (Settings.load(chapterverse_home=tmp_path, qdrant_url=gone, api_keys="secret-key"), "10.255.255.1"),
    ):
        with serve(settings) as server:
            known = server.http.get("/health", headers={"X-API-Key": "secret-key"}).text
            assert place in known
            for headers in ({}, {"X-API-Key": "wrong"}):
                answer = server.http.get("/health", headers=headers)
                assert answer.status_code in (200, 503)
                assert place not in answer.text
                assert "/" not in "".join(service["engine"] for service in answer.json()["services"].values())
            assert place not in server.http.get("/metrics").text


def test_without_keys_nobody_is_told_a_path(example_server: Served, example_home: Path) -> None:
    answer = example_server.http.get("/health", headers={"X-API-Key": "anything"})
    assert str(example_home) not in answer.text


def test_a_key_is_not_guessed_here_either(example_home: Path) -> None:
    settings = Settings.load(chapterverse_home=example_home, api_keys="secret-key", api_rate_limit=3)
    with serve(settings) as server:
        answers = [server.http.get("/health", headers={"X-API-Key": f"guess-{n}"}).status_code for n in range(4)]
        # A busy machine's first probe may be late (503); how often a key may be guessed does not depend on that.
        assert [code == 429 for code in answers] == [False, False, False, True]
        assert server.http.get("/health").status_code != 429
