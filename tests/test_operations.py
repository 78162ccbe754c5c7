"""The procedures of docs/OPERATIONS.md: backup, restore and a change of the embedding model without downtime."""

import asyncio
import json
import os
import shutil
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.process import chapterverse
from tests.conftest import ROOT
from tests.embeddings.stub import KEY, EmbeddingStub
from tests.faults.processes import Server, serving
from tests.faults.worlds import copied_book

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OPERATIONS = (ROOT / "docs" / "OPERATIONS.md").read_text("utf-8")
NODE = {"query": "What is a node in ROS 2?"}


def ask(server: Server) -> dict[str, Any]:
    """Asks until the turn is stored, because the embedded Postgres may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        answer = httpx2.post(f"{server.url}/chat", json=NODE, timeout=60, trust_env=False)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        assert body["status"] == "answered", answer.text
        if body["metadata"]["stored"]:
            return body
        assert time.monotonic() < deadline, "the turn was not stored"


def search(url: str) -> httpx2.Response:
    return httpx2.post(f"{url}/search", json=NODE, timeout=60, trust_env=False)


def copy_index(home: Path, backup: Path) -> "subprocess.CompletedProcess[str]":
    """Runs the commands of the document that copy the index of a home."""
    commands = OPERATIONS.partition("## Backup and restore")[2].partition("```bash\n")[2].partition("```")[0]
    environment = os.environ | {"CHAPTERVERSE_HOME": str(home), "BACKUP": str(backup)}
    return subprocess.run(["sh", "-ec", commands], env=environment, check=False, capture_output=True, text=True)


def test_copy_of_a_stopped_home_has_the_same_book_and_conversations(small_home: Path, postgres_root: Path) -> None:
    # In a folder that the account of Postgres can enter, so that conversations are stored inside the home.
    home, restored = copied_book(small_home, postgres_root / "operations"), postgres_root / "restored"
    with serving(home) as server:
        reply = ask(server)
        assert server.stop() == 0
    subprocess.run(["cp", "-a", str(home), str(restored)], check=True)
    shutil.rmtree(home)
    with serving(restored) as server:
        session = httpx2.get(f"{server.url}/sessions/{reply['session_id']}", timeout=60, trust_env=False).json()
        assert [message["content"] for message in session["messages"]] == [NODE["query"], reply["answer"].strip()]
        assert ask(server)["sources"] == reply["sources"]


def test_index_can_be_copied_while_it_is_served_and_written(
    small_home: Path, postgres_root: Path, tmp_path: Path
) -> None:
    home = copied_book(small_home, postgres_root / "copied")
    more = tmp_path / "more"
    more.mkdir()
    (more / "page.md").write_text("# Another page\n\nA new page came while the index was copied.\n")
    whole = 0
    with serving(home), ThreadPoolExecutor(1) as aside:
        ingest = aside.submit(chapterverse, home, "ingest", str(more))
        while not ingest.done() or not whole:
            whole += (
                copy_index(home, tmp_path / "restored").returncode == 0
            )  # otherwise it was replaced meanwhile; copy again
        assert ingest.result().returncode == 0, ingest.result().stderr
    found = chapterverse(tmp_path / "restored", "search", NODE["query"], "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["results"]


async def test_embedding_model_can_be_changed_without_downtime(small_home: Path, postgres_root: Path) -> None:
    old = copied_book(small_home, postgres_root / "old-model")
    async with EmbeddingStub() as stub:
        settings = {"COHERE_API_KEY": KEY, "COHERE_BASE_URL": stub.url}
        await asyncio.to_thread(_change_the_model, old, postgres_root / "new-model", settings)


def _change_the_model(old: Path, new: Path, settings: dict[str, str]) -> None:
    statuses: list[int] = []
    ended = threading.Event()

    def keep_asking(url: str) -> None:
        while not ended.is_set():
            statuses.append(search(url).status_code)

    with serving(old) as before, ThreadPoolExecutor(1) as reader:
        asking = reader.submit(keep_asking, before.url)
        try:
            assert copy_index(old, new).returncode == 0
            done = chapterverse(new, "ingest", "--reembed", **settings)
            assert done.returncode == 0, done.stderr
            with serving(new, **settings) as after:
                assert search(after.url).json()["results"]  # here the proxy would switch and the old server stop
                ended.set()
                asking.result(60)
        finally:
            ended.set()
    assert len(statuses) > 3
    assert set(statuses) == {200}
    # With the old settings a search fails instead of comparing vectors of two models.
    refused = chapterverse(new, "search", NODE["query"])
    assert refused.returncode != 0
    assert "--reembed" in refused.stderr
