"""Health tells the truth: each dependency up, failing or hung, and what follows for the whole."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from chapterverse import health
from chapterverse.errors import AgentUnavailable, IndexUnavailable
from chapterverse.health import Dependency, Health, LastCall


async def fine() -> None: ...


async def failing() -> None:
    raise IndexUnavailable("nobody there")


async def hung() -> None:
    await asyncio.Event().wait()


def one(name: str, probe: object, *, vital: bool, also_as: str = "") -> Dependency:
    return Dependency(name, "an engine", "because", probe, vital, also_as)  # type: ignore[arg-type]


async def test_all_up() -> None:
    answer = await Health(
        (one("qdrant", fine, vital=True), one("embeddings", fine, vital=True, also_as="cohere"))
    ).check()
    assert answer.status == "healthy"
    assert answer.services["cohere"] == answer.services["embeddings"]
    assert answer.services["qdrant"].latency_ms is not None


async def test_a_vital_one_down_is_unhealthy_whatever_the_order() -> None:
    for order in ((True, False), (False, True)):
        answer = await Health(tuple(one(f"d{vital}", failing, vital=vital) for vital in order)).check()
        assert answer.status == "unhealthy"
    assert answer.services["dTrue"].message == "nobody there"


async def test_another_one_down_is_degraded() -> None:
    answer = await Health((one("qdrant", fine, vital=True), one("database", failing, vital=False))).check()
    assert answer.status == "degraded"


async def test_a_hung_one_is_down_in_time() -> None:
    answer = await Health((one("qdrant", hung, vital=True),), patience=0.05).check()
    assert answer.services["qdrant"].status == "down"
    assert "0.05 seconds" in (answer.services["qdrant"].message or "")


async def test_the_answer_is_remembered_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    async def counted() -> None:
        nonlocal asked
        asked += 1

    prober = Health((one("qdrant", counted, vital=True),))
    await asyncio.gather(*(prober.check() for _ in range(20)))
    assert asked == 1
    monkeypatch.setattr(health, "REMEMBER_SECONDS", 0.0)
    await prober.check()
    assert asked == 2


async def test_an_answer_is_as_old_as_its_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes while a slow probe runs is not hidden behind an answer that looks new."""
    monkeypatch.setattr(health, "REMEMBER_SECONDS", 0.05)
    state = fine

    async def changing() -> None:
        await state()

    prober = Health((one("qdrant", changing, vital=True), one("llm", hung, vital=True)), patience=0.2)
    first = asyncio.create_task(prober.check())
    await asyncio.sleep(0.1)
    state = failing
    answer = await prober.check()
    assert (await first).services["qdrant"].status == "up"
    assert answer.services["qdrant"].status == "down"


def test_a_change_is_told_within_five_seconds() -> None:
    assert health.PROBE_SECONDS + health.REMEMBER_SECONDS < 5


async def test_a_fault_of_a_probe_does_not_hide_the_others() -> None:
    async def broken() -> None:
        raise ZeroDivisionError("secret detail")

    answer = await Health((one("qdrant", fine, vital=True), one("redis", broken, vital=False))).check()
    assert (answer.services["qdrant"].status, answer.services["redis"].status) == ("up", "down")
    assert "secret" not in answer.model_dump_json()


async def test_a_failed_call_counts_until_one_succeeds_however_long_that_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    last = LastCall(fine)
    await last.probe()
    last.failed("The last answer failed: no.")
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 86_400)
    monkeypatch.setattr("chapterverse.health.time", later)
    with pytest.raises(AgentUnavailable, match="The last answer failed"):
        await last.probe()
    last.worked()
    await last.probe()
