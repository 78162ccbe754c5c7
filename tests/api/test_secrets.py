"""No secret leaks: not in responses, health, metrics or OpenAPI, not in the log, the process list or the files.

A real server process has every secret set and every dependency refuses it. Everything it sends and writes is searched.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.faults.processes import descendants
from tests.llm_stub import Fails, serving_llm
from tests.served import free_port

pytestmark = pytest.mark.slow

MARK = "secret4711"
ASKED = {"query": "What is a node?"}


def test_no_secret_leaks(tmp_path: Path) -> None:
    with serving_llm() as stub:
        stub.usual = Fails(401)
        port = free_port()
        settings = {
            "CHAPTERVERSE_HOME": str(tmp_path / "home"),
            "API_KEYS": f"{MARK}-client",
            "OPENAI_API_KEY": f"{MARK}-openai",
            "OPENAI_BASE_URL": stub.url,
            "GEMINI_API_KEY": f"{MARK}-gemini",
            "COHERE_API_KEY": f"{MARK}-cohere",
            "COHERE_BASE_URL": "http://127.0.0.1:1",
            "QDRANT_URL": "http://127.0.0.1:1",
            "QDRANT_API_KEY": f"{MARK}-qdrant",
            "DATABASE_URL": f"postgresql://reader:{MARK}-postgres@127.0.0.1:1/book",
            "REDIS_URL": f"redis://:{MARK}-redis@127.0.0.1:1/0",
            "LOG_LEVEL": "DEBUG",
        }
        with (tmp_path / "log").open("wb") as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "chapterverse.cli", "serve", "--port", str(port)],
                env=os.environ | settings,
                stdout=log,
                stderr=log,
            )
        try:
            responses = list(responses_of_all_routes(f"http://127.0.0.1:{port}", server))
            listed = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(server.pid)]
        finally:
            server.terminate()
            server.wait(60)
    written = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    logged = (tmp_path / "log").read_bytes()
    assert logged
    for text in [*responses, *listed, *written, logged]:
        assert MARK.encode() not in text, text[:2000]


def responses_of_all_routes(url: str, server: "subprocess.Popen[bytes]") -> list[bytes]:
    """Body and headers of every route's response, with the key, without it and with a wrong one."""
    with httpx2.Client(base_url=url, timeout=60, trust_env=False) as http:
        deadline = time.monotonic() + 90
        while True:
            try:
                http.get("/livez")
                break
            except httpx2.TransportError:
                assert server.poll() is None and time.monotonic() < deadline, "the server did not start"
                time.sleep(0.05)
        answers = [http.get(path) for path in ("/health", "/readyz", "/metrics", "/openapi.json", "/docs", "/")]
        for headers in ({}, {"x-api-key": "wrong"}, {"authorization": f"Bearer {MARK}-client"}):
            answers += [http.post(path, json=ASKED, headers=headers) for path in ("/chat", "/chat/stream", "/search")]
            messages = [{"role": "user", "content": "What is a node?"}]
            answers.append(
                http.post("/v1/chat/completions", json={"messages": messages, "model": "m"}, headers=headers)
            )
            answers.append(http.get(f"/sessions/{'0' * 8}-0000-4000-8000-{'0' * 12}", headers=headers))
    statuses = {answer.status_code for answer in answers}
    assert 401 in statuses and 503 in statuses
    return [answer.content + str(answer.headers).encode() for answer in answers]
