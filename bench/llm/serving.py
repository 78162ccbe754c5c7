"""Runs the language model server as a separate process on loopback."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2

from bench.llm.installing import HOME, MODEL, SERVER

LOG: Final = HOME / "server.log"
_LOADING: Final = 180.0  # seconds that loading may take


@contextmanager
def serving_model() -> Iterator[str]:
    """Run the server and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, str(Path(__file__).with_name("server.py")), str(MODEL), str(port)]
    with LOG.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=os.environ | {"PYTHONPATH": str(SERVER)},
        )
    try:
        _wait(process, address)
        yield address
    finally:
        process.kill()
        process.wait()


def _wait(process: "subprocess.Popen[bytes]", address: str) -> None:
    end = time.monotonic() + _LOADING
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx2.get(f"{address}/health", timeout=5).status_code == 200:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"the language model server did not start; see {LOG}")
