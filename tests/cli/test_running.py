"""`serve`, `doctor` and `key`, and the help of every command."""

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn
from click.testing import CliRunner
from uvicorn import supervisors

from chapterverse.api.access.clients import Clients
from chapterverse.cli import main
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse.telemetry import SHARED_COUNTS
from tests.cli.process import Terminal, chapterverse
from tests.served import free_port

COMMANDS = [
    [],
    ["ingest"],
    ["sources"],
    ["forget"],
    ["search"],
    ["calibrate"],
    ["ask"],
    ["chat"],
    ["sessions"],
    ["serve"],
    ["mcp"],
    ["key"],
    ["doctor"],
]


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_help_has_examples(command: list[str]) -> None:
    shown = CliRunner().invoke(main, [*command, "--help"]).output
    assert "Usage:" in shown
    if command not in (["serve"], ["doctor"]):
        assert "  chapterverse " in shown.split("Options:")[0].split("\n", 1)[1], "the help has no example"


def test_help_imports_no_engine() -> None:
    script = "import sys, chapterverse.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "rich", "openai", "asyncpg", "fastapi"} & set(loaded)


def test_search_imports_no_reader() -> None:
    """Importing the readers took a quarter of the time."""
    script = "import sys, chapterverse.retrieval, chapterverse.terminal.answers; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "chapterverse.terminal.answers" in loaded
    assert not {
        "chapterverse.ingestion.pipeline",
        "chapterverse.ingestion.readers",
        "chapterverse.ingestion.sources.crawl",
    } & set(loaded)


@pytest.mark.slow
def test_missing_qdrant_and_redis_clients_fail_only_if_needed(example_home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules |= dict.fromkeys(['qdrant_client', 'redis'])")
    bare = {"PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    found = chapterverse(example_home, "search", "lidar", **bare)
    assert found.returncode == 0, found.stderr
    script = "from chapterverse.main import create_app; create_app()"
    subprocess.run([sys.executable, "-c", script], env=os.environ | bare, check=True)
    server = chapterverse(example_home, "serve", "--port", str(free_port()), REDIS_URL="redis://nowhere", **bare)
    assert server.returncode == ConfigurationError.exit_code
    assert "REDIS_URL: " in server.stderr and "pip install 'chapterverse[redis]'" in server.stderr
    doctor = chapterverse(example_home, "doctor", QDRANT_URL="http://nowhere", **bare)
    assert doctor.returncode == ConfigurationError.exit_code
    assert "QDRANT_URL: " in doctor.stderr and "pip install 'chapterverse[qdrant]'" in doctor.stderr


@pytest.mark.slow
def test_doctor_reports_engines_and_fixes(example_home: Path, tmp_path: Path, database_url: str) -> None:
    well = chapterverse(example_home, "doctor", "--json", DATABASE_URL=database_url)
    assert well.returncode == 0, well.stderr
    assert {finding["part"]: finding["state"] for finding in json.loads(well.stdout)["findings"]} == {
        "qdrant": "up",
        "embeddings": "up",
        "llm": "up",
        "database": "up",
        "book": "up",
    }
    empty = chapterverse(tmp_path, "doctor", DATABASE_URL=database_url)
    assert empty.returncode == 1
    assert "chapterverse ingest" in empty.stdout
    nowhere = f"http://127.0.0.1:{free_port()}"
    lost = chapterverse(tmp_path, "doctor", DATABASE_URL=database_url, QDRANT_URL=nowhere)
    assert lost.returncode == 1
    assert "QDRANT_URL is set" in lost.stdout
    assert "fix: Check QDRANT_URL" in lost.stdout


@pytest.mark.slow
def test_doctor_reports_what_is_down_without_secrets(example_home: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    secrets = {"DATABASE_URL": f"postgresql://user:hunter2@{nobody}/none", "REDIS_URL": f"redis://:hunter2@{nobody}/0"}
    model = {"OPENAI_API_KEY": "hunter2", "OPENAI_BASE_URL": f"http://{nobody}/v1"}
    shown = chapterverse(example_home, "doctor", "--json", **secrets, **model)
    assert shown.returncode == 1
    assert "hunter2" not in shown.stdout + shown.stderr
    findings = {finding["part"]: finding for finding in json.loads(shown.stdout)["findings"]}
    assert {part: finding["state"] for part, finding in findings.items()} == {
        "qdrant": "up",
        "embeddings": "up",
        "llm": "down",
        "judge": "down",
        "database": "down",
        "redis": "down",
        "book": "up",
    }
    assert all(findings[part]["message"] for part in ("llm", "judge", "database", "redis"))
    assert "DATABASE_URL" in findings["database"]["fix"] and "without it" in findings["database"]["fix"]
    assert "REDIS_URL" in findings["redis"]["fix"]
    assert "unset its key" in findings["llm"]["fix"]


@pytest.mark.slow
def test_doctor_reports_broken_embedded_engines(tmp_path: Path) -> None:
    for name in ("postgres", "initdb", "pg_ctl"):
        (tmp_path / name).write_text("#!/bin/sh\necho no room left\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    tmp_path.chmod(0o755)
    shown = chapterverse(tmp_path, "doctor", "--json", PG_BIN=str(tmp_path))
    findings = {finding["part"]: finding for finding in json.loads(shown.stdout)["findings"]}
    assert findings["qdrant"]["fix"] == findings["book"]["fix"] == "chapterverse ingest <folder, file or URL>"
    assert findings["database"]["why"] == "PG_BIN is set, and DATABASE_URL is not"
    assert "embedded Postgres" in findings["database"]["message"]
    assert findings["database"]["fix"].startswith("Set DATABASE_URL")


def test_key_prints_json() -> None:
    made = json.loads(CliRunner().invoke(main, ["key", "--json"]).stdout)
    assert made["setting"] == f"API_KEYS={made['digest']}"
    assert made["digest"] == f"sha256:{hashlib.sha256(made['key'].encode()).hexdigest()}"


def test_every_command_except_servers_has_json() -> None:
    """`serve` prints no data and logs JSON; the stdout of `mcp` is JSON-RPC."""
    commands = [
        (f"{name} {part}".strip(), command)
        for name, group in main.commands.items()
        for part, command in {"": group, **getattr(group, "commands", {})}.items()
    ]
    without = {name for name, command in commands if not any("--json" in one.opts for one in command.params)}
    assert without == {"serve", "mcp"}


def test_generated_key_is_accepted_by_its_digest() -> None:
    made = CliRunner().invoke(main, ["key"])
    settings = Settings.load(api_keys=made.stderr.strip().removeprefix("API_KEYS="))
    clients = Clients(keys=[entry.get_secret_value() for entry in settings.api_keys])
    header = (b"authorization", f"Bearer {made.stdout.strip()}".encode())
    client = clients.by_key({"type": "http", "headers": [header]})
    assert client is not None
    assert client.keyed
    assert made.stdout != CliRunner().invoke(main, ["key"]).stdout


@pytest.mark.slow
def test_serve_reports_a_taken_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        shown = chapterverse(tmp_path, "serve", "--port", str(taken.getsockname()[1]))
    assert shown.returncode == 1
    assert "--port" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["--port", "99999"], "'--port'"), (["--port", "-1"], "'--port'"), (["--workers", "0"], "'--workers'")],
)
def test_serve_rejects_invalid_numbers(arguments: list[str], expected: str) -> None:
    shown = CliRunner().invoke(main, ["serve", *arguments])
    assert shown.exit_code == 2
    assert expected in shown.stderr and "Traceback" not in shown.stderr


@pytest.mark.slow
def test_serve_reports_an_invalid_engine_setting(tmp_path: Path) -> None:
    shown = chapterverse(tmp_path, "serve", "--port", str(free_port()), COHERE_API_KEY="k", COHERE_MODEL="embed-none")
    assert shown.returncode == ConfigurationError.exit_code
    assert shown.stderr.startswith("error: COHERE_MODEL") and "Traceback" not in shown.stderr


@pytest.mark.parametrize(("ended_with", "code"), [((0, -15), 0), ((3, 0), 1)])
def test_serve_fails_when_a_worker_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended_with: tuple[int, ...], code: int
) -> None:
    class Supervisor:
        """Workers that have ended."""

        def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
            self.processes = [SimpleNamespace(exitcode=each) for each in ended_with]
            sockets[0].close()

        def run(self) -> None:
            """Wait for nothing."""

    monkeypatch.setenv("CHAPTERVERSE_HOME", str(tmp_path))
    monkeypatch.setattr(supervisors, "Multiprocess", Supervisor)
    shown = CliRunner().invoke(main, ["serve", "--workers", "2", "--port", str(free_port())])
    assert shown.exit_code == code, shown.output
    assert SHARED_COUNTS not in os.environ


@pytest.mark.slow
def test_serve_prints_its_address_on_a_terminal(example_home: Path, database_url: str) -> None:
    port = free_port()
    with Terminal(example_home, "serve", "--port", str(port), DATABASE_URL=database_url) as terminal:
        assert f"http://127.0.0.1:{port}/" in terminal.until("/docs")
        assert '{"time"' not in terminal.until("Application startup complete"), "the log is for people"
        terminal.type("\x03")
        terminal.ended()


def test_mcp_on_a_terminal_says_whom_it_is_for(example_home: Path, database_url: str) -> None:
    with Terminal(example_home, "mcp", DATABASE_URL=database_url) as terminal:
        terminal.until("for an MCP client")
        terminal.type("\x03")
        assert terminal.ended() == 130
