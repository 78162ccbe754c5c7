"""Settings: defaults, validation and secrets."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings, default_home

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.chdir(tmp_path)


def test_settings_have_defaults() -> None:
    settings = Settings.load()
    assert settings.qdrant_collection_name == "rag_embedding"
    assert settings.api_rate_limit == 60
    assert settings.chapterverse_home == Path.home() / ".chapterverse"


def test_home_in_the_working_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / ".chapterverse").mkdir()
    assert Settings.load().chapterverse_home == tmp_path / ".chapterverse"


def test_environment_overrides_the_env_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("AGENT_TOP_K=7\nAPI_RATE_LIMIT=5\nCOHERE_API_KEY=\n")
    monkeypatch.setenv("API_RATE_LIMIT", "9")
    settings = Settings.load()
    assert (settings.agent_top_k, settings.api_rate_limit) == (7, 9)
    assert settings.cohere_api_key is None  # an empty value means unset


def test_lists_are_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORS_ORIGINS", "https://a.example, https://b.example")
    monkeypatch.setenv("API_KEYS", "one,two")
    settings = Settings.load()
    assert settings.cors_origins == ("https://a.example", "https://b.example")
    assert [key.get_secret_value() for key in settings.api_keys] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_RATE_LIMIT", "many"),
        ("API_RATE_LIMIT", "0"),
        ("QDRANT_URL", "localhost"),
        ("QDRANT_URL", "http://node:6333,https://admin:s3cr3t@qdrant.example.com"),
        ("QDRANT_URL", "https://qdrant.example.com?key=s3cr3t"),
        ("DATABASE_URL", "mysql://somewhere"),
        ("DATABASE_URL", "postgresql://user:pass[word@somewhere/book"),
        ("REDIS_URL", "http://somewhere"),
        ("REDIS_URL", "redis://somewhere:port"),
        ("AGENT_TOP_K", "21"),
        ("CONVERSATION_RETENTION_DAYS", "1000000000"),
        ("AGENT_SCORE_THRESHOLD", "1.5"),
        ("CORS_ORIGINS", "docs.example.com"),
        ("EMBEDDINGS", "word2vec"),
        ("QDRANT_COLLECTION_NAME", "a/b"),
        ("OPENAI_BASE_URL", "ftp://x"),
        ("TRUSTED_PROXIES", "10.0.0.1,nowhere"),
        ("LOG_LEVEL", "LOUD"),
        ("API_KEYS", "sha256:12"),
        ("PG_BIN", "/usr/share"),
        ("CHAPTERVERSE_HOME", "~nosuchuser/x"),
    ],
)
def test_invalid_value_raises_an_error_with_its_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=rf"^{name}: ") as caught:
        Settings.load()
    assert "s3cr3t" not in str(caught.value)


IN_HEADERS = [name.upper() for name in Settings.model_fields if re.search("_keys?$", name)]


@pytest.mark.parametrize("value", ["schlüssel-s3cr3t", "s3cr3t\nlines", "  "])
@pytest.mark.parametrize("name", IN_HEADERS)
def test_secret_that_is_invalid_in_a_header_raises_an_error_with_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert set(IN_HEADERS) >= {"QDRANT_API_KEY", "JUDGE_API_KEY", "COHERE_API_KEY", "API_KEYS"}
    monkeypatch.setenv(name, value if value.strip() or name != "API_KEYS" else "\x7f")
    with pytest.raises(ConfigurationError, match=rf"^{name}: ") as caught:
        Settings.load()
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "module", "extra"),
    [
        ("QDRANT_URL", "http://somewhere:6333", "qdrant_client", "qdrant"),
        ("REDIS_URL", "redis://:s3cr3t-value@somewhere", "redis", "redis"),
    ],
)
def test_missing_client_library_raises_an_error_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, module: str, extra: str
) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(extras[extra]) <= set(extras["all"])
    monkeypatch.setenv(name, value)
    Settings.load()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=rf"^{name}: .* pip install 'chapterverse\[{extra}\]'$") as caught:
        Settings.load()
    assert "s3cr3t" not in str(caught.value)
    monkeypatch.delenv(name)
    Settings.load()


@pytest.mark.parametrize("value", [",", " , ", " "])
def test_keys_without_a_key_do_not_open_the_server(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("API_KEYS", value)
    with pytest.raises(ConfigurationError, match=r"^API_KEYS: contains no key; write one"):
        Settings.load()
    monkeypatch.setenv("API_KEYS", "")
    assert Settings.load().api_keys == ()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"BOOK_TITLE=X\nAPI_KEYS='s3cr3t\n", r"^\.env, line 2 cannot be read"),
        (b"OTHER='x\nAPI_KEYS='s3cr3t'\n", r"^\.env, line 1 cannot be read"),
        (b"API_KEYS: s3cr3t\n", r"^\.env, line 1 cannot be read: it is not NAME=value"),
        ("BOOK_TITLE=Größe".encode("latin-1"), r"^\.env is not UTF-8 text"),
        ("BOOK_TITLE=Größe".encode("utf-16"), r"^\.env is not UTF-8 text"),
    ],
)
def test_env_file_that_cannot_be_read_raises_an_error(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(ConfigurationError, match=told) as caught:
        Settings.load()
    assert "s3cr3t" not in str(caught.value)


def test_lines_of_other_programs_in_the_env_file_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('DB_HOST: localhost\nalias ll="ls"\nBOOK_TITLE=X\n')
    assert Settings.load().book_title == "X"


def test_removed_working_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigurationError, match=r"^the working folder cannot be read"):
        Settings.load()


def test_folder_that_may_not_be_entered_is_not_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert default_home() == Path.home() / ".chapterverse"
    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(ConfigurationError, match=r"^\.env cannot be read: Permission denied$"):
        Settings.load()


def test_home_that_is_a_file_raises_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CHAPTERVERSE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigurationError, match=r"^CHAPTERVERSE_HOME: "):
        Settings.load()


def test_secrets_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "COHERE_API_KEY", "QDRANT_API_KEY", "API_KEYS"):
        monkeypatch.setenv(name, "s3cr3t-value")
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:s3cr3t-value@host/db")
    monkeypatch.setenv("REDIS_URL", "redis://:s3cr3t-value@host")
    settings = Settings.load()
    assert "s3cr3t" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_error_does_not_contain_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://user:s3cr3t-value@host/db")
    with pytest.raises(ConfigurationError) as caught:
        Settings.load()
    assert "s3cr3t" not in str(caught.value)


def test_every_setting_is_in_the_example_file() -> None:
    example = (ROOT / ".env.example").read_text("utf-8")
    named = set(re.findall(r"^#?\s?([A-Z][A-Z_]+)=", example, re.M))
    assert named == {name.upper() for name in Settings.model_fields}


def test_home_is_found_in_a_parent_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "clone" / "docs" / "guide"
    below.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.chdir(below)
    assert default_home() == tmp_path / "user" / ".chapterverse"
    (tmp_path / "clone" / ".chapterverse").mkdir()
    assert default_home() == tmp_path / "clone" / ".chapterverse"
    (below / ".chapterverse").mkdir()
    assert default_home() == below / ".chapterverse", "the nearest one"


def test_accent_that_is_no_colour_is_refused_with_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCENT", "red")
    with pytest.raises(ConfigurationError, match=r"^ACCENT: must be a colour such as #1a2b3c$"):
        Settings.load()
