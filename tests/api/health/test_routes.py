"""`/health` over real HTTP: failed answers of a model or judge, engines in use, details only for callers with a key."""

from pathlib import Path
from typing import Any

import pytest

from chapterverse.health import REMEMBER_SECONDS
from chapterverse.settings import Settings
from tests.llm_stub import Fails, LlmStub, Raw, Replies, serving_llm
from tests.served import Served, serve

pytestmark = pytest.mark.slow

QUESTION = {"query": "What is ROS 2?"}


@pytest.fixture(autouse=True)
def without_health_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    assert REMEMBER_SECONDS > 0
    monkeypatch.setattr("chapterverse.health.REMEMBER_SECONDS", 0.0)


def is_up(server: Served, name: str = "llm") -> None:
    """The status is healthy and this service is up."""
    health = server.health(lambda said: said["status"] == "healthy")
    assert (health["services"][name]["status"], health["services"][name]["message"]) == ("up", None)


def is_down(server: Served, status: str, why: str = "", name: str = "llm") -> None:
    """This service is down with a message that starts with `why`, and the overall status is `status`."""

    def wanted(health: dict[str, Any]) -> bool:
        model = health["services"][name]
        return (health["status"], model["status"]) == (status, "down") and str(model["message"]).startswith(why)

    server.health(wanted)


def test_model_is_down_after_a_failed_answer_until_one_succeeds(example_home: Path, postgres_url: str) -> None:
    with serving_llm() as llm:
        settings = Settings.load(
            chapterverse_home=example_home, database_url=postgres_url, openai_api_key="k", openai_base_url=llm.url
        )
        with serve(settings) as server:
            is_up(server)
            llm.usual = Fails(401)
            assert server.http.post("/chat", json=QUESTION).status_code == 503
            is_down(server, "unhealthy", "The last answer failed: ")
            llm.usual = Replies("Fine.")
            server.http.post("/chat", json=QUESTION)
            is_up(server)
            llm.usual = Fails(401)
            server.http.post("/chat", json=QUESTION)
            is_down(server, "unhealthy", "The last answer failed: ")
            # Stays ready, so that the next question can show whether it works again.
            assert server.http.get("/readyz").status_code == 200
            llm.usual = Replies("Fine.")
            server.http.post("/chat", json=QUESTION)
            is_up(server)


def test_model_that_came_back_is_up_only_after_a_successful_answer(example_home: Path, postgres_url: str) -> None:
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
            llm.usual, llm.models = Replies("Fine."), None
            is_down(server, "unhealthy", "The last answer failed: ")
            server.http.post("/chat", json=QUESTION)
            is_up(server)


def with_a_judge(home: Path, database: str, llm: LlmStub, judge: LlmStub) -> Settings:
    """Settings with one server for the writing model and another one for the judge."""
    return Settings.load(
        chapterverse_home=home,
        database_url=database,
        openai_api_key="k",
        openai_base_url=llm.url,
        judge_base_url=judge.url,
    )


@pytest.mark.parametrize(
    ("mode", "why"), [("fails", "The judge failed (HTTP 500)"), ("prose", "The judge gave no verdict that can be read")]
)
def test_judge_whose_calls_fail_is_down_while_the_writing_model_is_up(
    example_home: Path, postgres_url: str, mode: str, why: str
) -> None:
    with serving_llm() as llm, serving_llm() as other:
        settings = with_a_judge(example_home, postgres_url, llm, other)
        claim = "ROS 2 is what people use who build robots"
        llm.usual = Replies(f"{claim} [1.1].")
        other.judge.truths.add(claim)
        with serve(settings) as server:
            is_up(server, "judge")
            other.judge.mode = mode
            # Questions are still answered, with quotes from the book.
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
def test_unreachable_judge_is_down(example_home: Path, postgres_url: str, models: Fails | Raw) -> None:
    with serving_llm() as llm, serving_llm() as other:
        settings = with_a_judge(example_home, postgres_url, llm, other)
        with serve(settings) as server:
            other.models = models
            is_down(server, "degraded", name="judge")
            other.models = Fails(404)
            is_up(server, "judge")


def test_health_lists_only_engines_in_use(example_server: Served) -> None:
    services = example_server.http.get("/health").json()["services"]
    assert services.keys() == {"qdrant", "embeddings", "llm", "database"}


def test_health_shows_paths_and_addresses_only_with_a_key(example_home: Path, tmp_path: Path) -> None:
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


def test_health_shows_no_path_if_no_keys_are_configured(example_server: Served, example_home: Path) -> None:
    answer = example_server.http.get("/health", headers={"X-API-Key": "anything"})
    assert str(example_home) not in answer.text


def test_health_limits_wrong_keys(example_home: Path) -> None:
    settings = Settings.load(chapterverse_home=example_home, api_keys="secret-key", api_rate_limit=3)
    with serve(settings) as server:
        answers = [server.http.get("/health", headers={"X-API-Key": f"guess-{n}"}).status_code for n in range(4)]
        # On a busy machine the first probe may time out (503). The limit on wrong keys does not depend on that.
        assert [code == 429 for code in answers] == [False, False, False, True]
        assert server.http.get("/health").status_code != 429
