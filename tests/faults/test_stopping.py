"""SIGTERM: open answers are finished, new ones refused, the exit code is 0, and nothing is left behind."""

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.outcomes import FULL, Outcome, record
from tests.faults.processes import STOPPING, children, runs, start, until
from tests.faults.test_dependencies import make_database
from tests.faults.worlds import copied_book
from tests.llm_stub import Quotes, serving_llm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STREAMS = 8


@pytest.mark.parametrize("workers", ["1", "2"] if FULL else ["1"])
async def test_stopping_server_finishes_its_open_answers(
    small_home: Path, tmp_path: Path, postgres_url: str, workers: str
) -> None:
    home = copied_book(small_home, tmp_path / "home")
    database_url = await make_database(postgres_url, f"stopping_{workers}")
    with serving_llm() as stub:
        stub.usual = Quotes(count=1, pause=0.05)
        settings: dict[str, Any] = {"openai_api_key": "k", "openai_base_url": stub.url, "openai_model": "stub"}
        server = start(home, "--workers", workers, database_url=database_url, **settings)
        try:
            await asyncio.to_thread(server.wait_until_ready)
            async with httpx2.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as http:
                body = {"query": "What is a node in ROS 2?"}
                answers = [asyncio.create_task(http.post("/chat/stream", json=body)) for _ in range(STREAMS)]
                await until(lambda: len(stub.requests) >= STREAMS and stub.words_sent > STREAMS, what="all streams")
                offspring = children(server.process.pid)
                server.process.send_signal(signal.SIGTERM)
                began = time.monotonic()
                ends = [json.loads(answer.text.split("data: ")[-1]) for answer in await asyncio.gather(*answers)]
            code = await asyncio.to_thread(server.process.wait, STOPPING)
            took = time.monotonic() - began
            with pytest.raises(httpx2.TransportError):
                httpx2.get(f"{server.url}/livez", trust_env=False)
        finally:
            if server.process.poll() is None:
                server.kill()
    assert [(end["type"], end["metadata"]["stored"]) for end in ends] == [("done", True)] * STREAMS
    assert code == 0
    await until(lambda: not any(map(runs, offspring)), what="the end of its processes")
    seen = f"{STREAMS} of {STREAMS} streams ended in `done`, stored; new connections refused; exit code {code}"
    record(Outcome("Stopping", f"SIGTERM, {workers} worker(s)", f"with {STREAMS} open streams", seen, took, 0.0))
