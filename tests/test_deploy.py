"""The deployment files are valid and refer to existing names. No test needs Docker, systemd or a proxy."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from chapterverse.api.access.guard import MAX_BODY
from chapterverse.cli import main
from chapterverse.main import create_app
from chapterverse.settings import Settings
from chapterverse.telemetry import Telemetry
from tests.scripted import Scripted, without_engines
from tests.served import serve

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "DEPLOYMENT.md").read_text("utf-8")
SETTINGS = {name.upper() for name in Settings.model_fields}
OTHER_VARIABLES = {"PATH", "PYTHONDONTWRITEBYTECODE"}  # of Python and the shell


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)
    ]


def composed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / name).read_text("utf-8"))
    return found


def assert_serve_accepts(arguments: list[str]) -> None:
    """Fails if `chapterverse serve` does not accept these arguments."""
    assert arguments[0] == "serve"
    command = main.commands["serve"]
    command.make_context("serve", arguments[1:])


def test_image_has_a_user_one_volume_and_a_health_check() -> None:
    final = instructions()[max(at for at, (word, _) in enumerate(instructions()) if word == "FROM") :]
    words = [word for word, _ in final]
    (user,) = [rest for word, rest in final if word == "USER"]
    assert user not in {"root", "0"} and any(f" {user} " in f"{rest} " for word, rest in final if word == "RUN")
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert [rest for word, rest in final if word == "VOLUME"] == ["/data"]
    (variables,) = [rest for word, rest in final if word == "ENV"]
    named = dict(part.split("=", 1) for part in shlex.split(variables))
    assert set(named) - OTHER_VARIABLES <= SETTINGS
    assert named["CHAPTERVERSE_HOME"] == "/data"
    (check,) = [rest for word, rest in final if word == "HEALTHCHECK"]
    (path,) = re.findall(r"http://127\.0\.0\.1:8000(/\w+)", check)
    assert path in create_app(Settings.load(), opening=without_engines()).openapi()["paths"]
    compile(json.loads(check.partition("CMD ")[2])[2], "HEALTHCHECK", "exec")
    (entry,) = [json.loads(rest) for word, rest in final if word == "ENTRYPOINT"]
    (arguments,) = [json.loads(rest) for word, rest in final if word == "CMD"]
    assert entry == ["chapterverse"]
    assert_serve_accepts(arguments)


def test_dockerignore_allows_exactly_the_copied_files() -> None:
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored and sent == {name for names in copied for name in names}
    assert all((ROOT / name).exists() for name in sent)


@pytest.mark.parametrize("name", ["compose.yaml", "compose.engines.yaml"])
def test_compose_files_use_existing_settings_services_and_volumes(name: str) -> None:
    file, whole = composed(name), composed("compose.yaml")
    service = file["services"]["chapterverse"]
    assert set(service["environment"]) <= SETTINGS
    for variable, value in service["environment"].items():
        if variable.endswith("_URL"):
            assert re.search(r"(?://|@)(\w+):\d+", value)[1] in file["services"]  # type: ignore[index]
    assert set(service.get("depends_on", {})) <= set(file["services"])
    for needed, how in service.get("depends_on", {}).items():
        assert (how["condition"] == "service_healthy") == ("healthcheck" in file["services"][needed])
    for each in file["services"].values():
        for volume in each.get("volumes", []):
            place = volume.split(":")[0]
            assert (ROOT / place).exists() if place.startswith(".") else place in file["volumes"]
    if "command" in service:
        assert_serve_accepts(service["command"])
    published = whole["services"]["chapterverse"]["ports"]
    assert all(port.startswith("127.0.0.1:") for port in published), "clients connect through the proxy"


def test_settings_in_compose_engines_are_valid() -> None:
    variables = composed("compose.engines.yaml")["services"]["chapterverse"]["environment"]
    given = {name.lower(): re.sub(r"\$\{.+?\}", "secret", value) for name, value in variables.items()}
    assert Settings.load(**given).qdrant_url == "http://qdrant:6333"


def test_systemd_unit_is_valid(tmp_path: Path) -> None:
    text = (DEPLOY / "chapterverse.service").read_text("utf-8")
    unit = configparser.RawConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    assert service["User"] not in {"root", "0"} and service["NoNewPrivileges"] == "yes"
    named = dict(re.findall(r"^Environment=(\w+)=(.+)$", text, re.MULTILINE))
    assert set(named) <= SETTINGS
    assert named["CHAPTERVERSE_HOME"] == f"/var/lib/{service['StateDirectory']}"
    Settings.load(**{name.lower(): value for name, value in named.items() if name != "CHAPTERVERSE_HOME"})
    program, *arguments = shlex.split(service["ExecStart"])
    assert program in GUIDE, "the guide installs it at this path"
    assert_serve_accepts(arguments)
    if analyze := shutil.which("systemd-analyze"):
        copy = tmp_path / "chapterverse.service"
        copy.write_text(text.replace(program, "/bin/true"), "utf-8")  # the program must exist to be verified
        done = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, check=False)
        assert [line for line in done.stderr.splitlines() if "chapterverse.service" in line] == []


def test_proxies_do_not_buffer_events_and_block_metrics() -> None:
    caddy, nginx = ((DEPLOY / name).read_text("utf-8") for name in ("Caddyfile", "nginx.conf"))
    for text in (caddy, nginx):
        assert text.count("{") == text.count("}")
        assert "127.0.0.1:8000" in text and "TRUSTED_PROXIES=127.0.0.1" in text and "/metrics" in text
    assert "flush_interval -1" in caddy
    assert "proxy_buffering off;" in nginx and "gzip off;" in nginx
    assert f"client_max_body_size {MAX_BODY // 1024}k;" in nginx
    for line in nginx.splitlines():
        directive = line.partition("#")[0].strip()
        assert not directive or directive[-1] in "{};", line
    paths = create_app(Settings.load(), opening=without_engines()).openapi()["paths"]
    whole = re.search(r"@whole \{(.+?)\}", caddy, re.DOTALL)
    passed_on = [path for line in re.findall(r"not path (.+)", whole[1]) for path in line.split()]  # type: ignore[index]
    for path in passed_on:
        own = path.removeprefix("/editions/*")
        assert own in paths or any(route.startswith(own.rstrip("*")) for route in paths), path
    streams = [path for path, methods in paths.items() if "text/event-stream" in str(methods)]
    assert {"/chat/stream", "/v1/responses", "/mcp"} <= set(streams)
    for path in (*streams, *(f"/editions/guide@2.0{path}" for path in streams)):
        assert any(fnmatch(path, pattern) for pattern in passed_on), f"Caddy would compress {path}"


def test_internal_routes_are_not_served_below_an_edition(tmp_path: Path) -> None:
    settings = Settings.load(chapterverse_home=tmp_path)
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        for path in ("/metrics", "/health", "/livez"):
            assert server.http.get(path).status_code == 200
        for path in ("/metrics", "/health", "/livez", "/readyz", "/%6detrics", "/metrics/", "//metrics"):
            answer = server.http.get(f"/editions/any{path}")
            assert answer.status_code in (404, 307), path
            if answer.status_code == 307:  # within the edition, where they are not served
                assert answer.headers["location"] == f"..{path.rstrip('/')}"
                assert server.http.get(f"/editions/any{path.rstrip('/')}").status_code == 404
        assert server.http.get("/editions/any/docs").status_code == 200


def test_package_data_includes_every_tracked_file() -> None:
    """Tests run from the repository, so no other test notices a file that is not packaged."""
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    package = ROOT / "src" / "chapterverse"
    listed = subprocess.run(["git", "ls-files", "."], cwd=package, capture_output=True, text=True, check=True).stdout
    sent = {path for pattern in packaged["chapterverse"] for path in package.glob(pattern)}
    assert {name for name in listed.split() if not name.endswith(".py") and package / name not in sent} == set()


def known_metrics() -> dict[str, set[str]]:
    """All metrics of a server with their labels."""
    known: dict[str, set[str]] = {}
    ours = [each for each in vars(Telemetry()).values() if hasattr(each, "_labelnames")]
    for metric in ours:
        name, labels = metric._name, set(metric._labelnames)
        suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}[metric._type]
        known |= {name + suffix: labels | ({"le"} if suffix == "_bucket" else set()) for suffix in suffixes}
    process = [
        line.split()[2] for line in Telemetry().exposition().decode().splitlines() if line.startswith("# TYPE p")
    ]
    return known | {name: set() for name in process}


def test_dashboard_uses_existing_metrics_and_shows_all() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    known, shown = known_metrics(), set()
    for panel in dashboard["panels"]:
        assert panel["title"] and panel["description"]
        for target in panel["targets"]:
            expression = target["expr"]
            metrics = re.findall(r"\b((?:chapterverse|process)_\w+)", expression)
            assert metrics and set(metrics) <= set(known), expression
            named = set(re.findall(r'(\w+)=~?"', expression)) | set(
                re.findall(r"\w+", " ".join(re.findall(r"by \((.+?)\)", expression)))
            )
            labels = set().union(*(known[metric] for metric in metrics)) | {"instance", "job"}
            assert named <= labels, expression
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
            assert expression.count("(") == expression.count(")")
            shown |= set(metrics)
    missing = {name for name in known if name.startswith("chapterverse_")} - shown
    assert {name for name in missing if not name.endswith(("_sum", "_count"))} == set()
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(places) == len(set(places))
    job = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))["scrape_configs"][0]
    assert job["job_name"] == "chapterverse" and job["static_configs"][0]["targets"] == ["127.0.0.1:8000"]


def test_guide_names_every_file_and_existing_settings_only() -> None:
    files = [path.name for path in DEPLOY.iterdir()] + ["Dockerfile", "compose.yaml", "compose.engines.yaml"]
    assert [name for name in files if name not in GUIDE] == []
    variables = set(re.findall(r"\b([A-Z]{2,}(?:_[A-Z]+)+)\b(?==|`)", GUIDE))
    others = {"POSTGRES_PASSWORD", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    assert variables and variables - others <= SETTINGS
