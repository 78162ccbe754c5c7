"""Health with each dependency up, failing or hung, and the overall status."""

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


def make_dependency(name: str, probe: object, *, vital: bool, also_as: str = "") -> Dependency:
    return Dependency(name, "an engine", "because", probe, vital, also_as)  # type: ignore[arg-type]


async def test_all_dependencies_up_is_healthy() -> None:
    answer = await Health(
        (make_dependency("qdrant", fine, vital=True), make_dependency("embeddings", fine, vital=True, also_as="cohere"))
    ).check()
    assert answer.status == "healthy"
    assert answer.services["cohere"] == answer.services["embeddings"]
    assert answer.services["qdrant"].latency_ms is not None


async def test_failing_vital_dependency_is_unhealthy_in_any_order() -> None:
    for order in ((True, False), (False, True)):
        answer = await Health(tuple(make_dependency(f"d{vital}", failing, vital=vital) for vital in order)).check()
        assert answer.status == "unhealthy"
    assert answer.services["dTrue"].message == "nobody there"


async def test_failing_optional_dependency_is_degraded() -> None:
    answer = await Health(
        (make_dependency("qdrant", fine, vital=True), make_dependency("database", failing, vital=False))
    ).check()
    assert answer.status == "degraded"


async def test_hung_dependency_is_down_after_the_timeout() -> None:
    answer = await Health((make_dependency("qdrant", hung, vital=True),), patience=0.05).check()
    assert answer.services["qdrant"].status == "down"
    assert "0.05 seconds" in (answer.services["qdrant"].message or "")


async def test_result_is_cached_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    async def counted() -> None:
        nonlocal asked
        asked += 1

    prober = Health((make_dependency("qdrant", counted, vital=True),))
    await asyncio.gather(*(prober.check() for _ in range(20)))
    assert asked == 1
    monkeypatch.setattr(health, "REMEMBER_SECONDS", 0.0)
    await prober.check()
    assert asked == 2


async def test_age_of_a_result_counts_from_the_start_of_its_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change during a slow probe must not be hidden by a result that seems new."""
    monkeypatch.setattr(health, "REMEMBER_SECONDS", 0.05)
    state = fine

    async def changing() -> None:
        await state()

    prober = Health(
        (make_dependency("qdrant", changing, vital=True), make_dependency("llm", hung, vital=True)), patience=0.2
    )
    first = asyncio.create_task(prober.check())
    await asyncio.sleep(0.1)
    state = failing
    answer = await prober.check()
    assert (await first).services["qdrant"].status == "up"
    assert answer.services["qdrant"].status == "down"


def test_change_is_reported_within_five_seconds() -> None:
    assert health.PROBE_SECONDS + health.REMEMBER_SECONDS < 5


async def test_exception_in_a_probe_does_not_affect_others() -> None:
    async def broken() -> None:
        raise ZeroDivisionError("secret detail")

    answer = await Health(
        (make_dependency("qdrant", fine, vital=True), make_dependency("redis", broken, vital=False))
    ).check()
    assert (answer.services["qdrant"].status, answer.services["redis"].status) == ("up", "down")
    assert "secret" not in answer.model_dump_json()


async def test_failed_call_counts_until_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    last = LastCall(fine)
    await last.probe()
    last.failed("The last answer failed: no.")
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 86_400)
    monkeypatch.setattr("chapterverse.health.time", later)
    with pytest.raises(AgentUnavailable, match="The last answer failed"):
        await last.probe()
    last.worked()
    await last.probe()
