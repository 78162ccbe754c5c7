"""Opens many streams at once at the default settings, with a model that needs 300 ms and then 20 ms a token.

`python -m bench.open_streams [STREAMS]` starts a server over the example book and the model as separate processes. The
streams come from many addresses through a trusted proxy, because of the rate limit for one address.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from tests.faults.processes import serving
from tests.served import free_port

from bench.load import Request, loading, make_book
from bench.results import ROOT, save

STREAMS: Final = 200
PACE: Final = {"first_ms": 300, "token_ms": 20, "tokens": 60}
MODEL: Final = "stub: 300 ms to the first token, 20 ms each, 60 tokens; it judges at the same pace"
PER_READER: Final = 10  # streams from one address; 60 requests a minute are allowed


@contextmanager
def paced_model() -> Iterator[str]:
    """Run the model as a separate process and yield its address."""
    port, admin = free_port(), free_port()
    command = [sys.executable, "-m", "bench.race.stub", str(port), str(admin)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as stub:
        try:
            assert stub.stdout is not None and stub.stdout.readline().strip() == "ready"
            httpx2.post(f"http://127.0.0.1:{admin}/admin/pace", json=PACE, timeout=10, trust_env=False)
            yield f"http://127.0.0.1:{port}/streams/v1"
        finally:
            stub.kill()


async def open_streams(url: str, streams: int) -> dict[str, Any]:
    """Open all streams at once, search meanwhile, and return the outcomes."""
    questions = [json.loads(line) for line in (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines()]
    asked = [question["question"] for question in questions if question["answerable"]]
    requests = (
        Request("/chat/stream", {"query": asked[number % len(asked)]}, f"10.0.{number // PER_READER}.1")
        for number in range(streams)
    )
    async with loading(url, streams) as load, loading(url, 1) as short:
        running = asyncio.create_task(load.run(requests))
        waits: list[tuple[str, int]] = []
        while not running.done():
            began = time.monotonic()
            outcome, _ = await short.send(Request("/search", {"query": "What is a node?"}, f"10.1.{len(waits)}.1"))
            waits.append((outcome, round(1000 * (time.monotonic() - began))))
            await asyncio.wait({running}, timeout=0.5)
        account = await running
    searches = {"outcomes": sorted({outcome for outcome, _ in waits}), "worst_ms": max(wait for _, wait in waits)}
    return {"streams": streams, "model": MODEL, **account.figures(), "searches_meanwhile": searches}


@contextmanager
def paced_server(home: Path, **settings: Any) -> Iterator[str]:
    """Run a server at its default settings that uses this model."""
    with paced_model() as model:
        asking = {"openai_api_key": "stub", "openai_model": "stub", "openai_base_url": model}
        limits = {"api_rate_limit": 60, "trusted_proxies": "127.0.0.1"}
        with serving(home, **asking, **limits, **settings) as server:
            yield server.url


def bench(streams: int) -> None:
    """Measure, print and save."""
    results: dict[str, Any] = {"load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)  # the embedded Postgres does not run as root and must be able to read the folder
        asyncio.run(make_book(home))
        with paced_server(home) as url:
            asyncio.run(open_streams(url, 5))  # warm up caches and pools
            results |= asyncio.run(open_streams(url, streams))
    results["load_after"] = os.getloadavg()[0]
    print(json.dumps(results))
    print(f"written to {save('open-streams', results).relative_to(ROOT)}")


if __name__ == "__main__":
    bench(int(sys.argv[1]) if sys.argv[1:] else STREAMS)
