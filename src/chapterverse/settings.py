"""Settings, read from the environment and `.env` and validated.

Only `wiring`, `main` and `cli` read it. Secrets are `SecretStr`, so that printing the settings shows none.
"""

import os
import re
import sys
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from dotenv.parser import parse_stream
from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    Field,
    IPvAnyNetwork,
    SecretStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from chapterverse import plugins
from chapterverse.errors import ConfigurationError
from chapterverse.fields import problem

QDRANT_COLLECTION = "rag_embedding"
COHERE_MODEL = "embed-english-v3.0"
OPENAI_URL = "https://api.openai.com/v1"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/openai/"

# Time limits of one request, in seconds (SPEC 7).
REQUEST_SECONDS = 30.0
RETRIEVAL_SECONDS = 5.0
GENERATION_SECONDS = 25.0

DIGEST = "sha256:"  # an API key may be configured as this prefix and its digest

LOGO_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}

ENV_FILE = Path(".env")

_HTTP = TypeAdapter(AnyHttpUrl)
# Setting -> the extra that it needs, and a module to detect it.
_EXTRAS = {"qdrant_url": ("qdrant", "qdrant_client"), "redis_url": ("redis", "redis")}

# Settings that name an engine -> the kind of plug-in that may add one, and the built-in names.
_ENGINES: dict[str, tuple[plugins.Kind, tuple[str, ...]]] = {
    "embeddings": ("embedder", ("auto", "local", "cohere", "openai")),
    "writer": ("writer", ("auto",)),
}


def default_home() -> Path:
    """The nearest `.chapterverse` in the working folder or above it, else the one in the user's home. Above the working
    folder it must belong to the same user: in a shared folder anybody could create one."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        home = folder / ".chapterverse"
        # Path.is_dir raises for a folder that this user may not enter.
        if os.path.isdir(home) and (folder == here or home.stat().st_uid == here.stat().st_uid):  # noqa: PTH112
            return home
    return Path.home() / ".chapterverse"


def _check_env_file() -> None:
    """Refuse a file with a line that names a setting and cannot be parsed. Such a line would be ignored, and if it has
    the API keys, the server would be open. Other lines may be meant for other programs."""
    if ENV_FILE.is_file():
        for binding in parse_stream(StringIO(ENV_FILE.read_text("utf-8"))):
            named = set(re.findall(r"\w+", binding.original.string.lower()))
            if binding.error and named & Settings.model_fields.keys():
                raise ConfigurationError(
                    f"{ENV_FILE}, line {binding.original.line} cannot be read: it is not NAME=value, or a quotation "
                    "mark is missing"
                )


def _sendable(secret: SecretStr) -> SecretStr:
    key = secret.get_secret_value().strip()
    if not (key and key.isascii() and key.isprintable()):
        raise ValueError("must be plain printable characters")
    return SecretStr(key)


def _address(url: SecretStr, *, one_host: bool = False) -> SecretStr:
    """The address if it can be read. `one_host`: else each of several hosts has its own port."""
    try:
        parts = urlsplit(url.get_secret_value())
        _ = parts.port if one_host else None
    except ValueError:  # without its text, which may contain the password
        raise ValueError("is not a valid address; special characters in a password are written as %XX") from None
    return url


HeaderSecret = Annotated[SecretStr, AfterValidator(_sendable)]  # sent or received in an HTTP header


class Settings(BaseSettings):
    """All settings. None is required: by default every part runs on its embedded engine."""

    model_config = SettingsConfigDict(
        env_file=ENV_FILE, env_file_encoding="utf-8", env_ignore_empty=True, extra="ignore", frozen=True
    )

    chapterverse_home: Path = Field(
        default_factory=default_home,
        description="Folder of the book and of the embedded engines' data; default: the nearest `.chapterverse` in the "
        "working folder or above it, else the one in the user's home.",
    )

    gemini_api_key: HeaderSecret | None = Field(None, description="API key of Gemini; turns its language model on.")
    gemini_model: str = Field("gemini-3.8-flash", description="Gemini's language model.")
    gemini_base_url: str = Field(GEMINI_URL, description="Gemini's OpenAI-compatible endpoint.")
    openai_api_key: HeaderSecret | None = Field(
        None, description="API key of an OpenAI-compatible server; turns it on."
    )
    openai_model: str = Field("gpt-5.4-mini", description="Language model of the OpenAI-compatible server.")
    openai_base_url: str = Field(OPENAI_URL, description="Address of that server: OpenAI, Ollama, vLLM, llama.cpp …")
    openai_embedding_model: str = Field(
        "text-embedding-3-small", description="Embedding model of the OpenAI-compatible server."
    )
    openai_embedding_dimension: int = Field(1536, ge=1, le=65_536, description="Dimension of that model's vectors.")

    embeddings: str = Field(
        "auto",
        description="Embedding engine: local, cohere, openai or that of an installed package; auto: Cohere with its "
        "key, else OpenAI with its key, else local.",
    )
    cohere_api_key: HeaderSecret | None = Field(None, description="API key of Cohere; turns its embeddings on.")
    cohere_model: str = Field(COHERE_MODEL, description="Cohere's embedding model.")
    cohere_base_url: str = Field("https://api.cohere.com", description="Cohere's endpoint.")

    qdrant_url: str | None = Field(
        None,
        description="A Qdrant server or Cloud instead of the embedded engine; nodes of a cluster, separated by commas. "
        "The port is 6333 if the address has none, also for https.",
    )
    qdrant_api_key: HeaderSecret | None = Field(None, description="API key of the Qdrant server.")
    qdrant_collection_name: str = Field(
        QDRANT_COLLECTION, pattern=r"^[A-Za-z0-9_-]{1,200}$", description="Collection on the Qdrant server."
    )

    qdrant_shards: int = Field(1, ge=1, le=1024, description="Shards of a new collection on a Qdrant cluster.")
    qdrant_replicas: int = Field(1, ge=1, le=16, description="Copies of each shard on a Qdrant cluster.")

    database_url: SecretStr | None = Field(None, description="Postgres for conversations instead of the embedded one.")
    pg_bin: Path | None = Field(
        None,
        description="Folder of postgres, initdb and pg_ctl that the embedded server runs instead of the package's.",
    )
    redis_url: SecretStr | None = Field(None, description="Shares rate limits and servers' states between workers.")

    api_rate_limit: int = Field(60, ge=1, description="Requests a minute per client.")
    api_keys: Annotated[tuple[HeaderSecret, ...], NoDecode] = Field(
        (), description="Comma-separated API keys or their `sha256:` digests; empty: none is needed."
    )
    api_key_rate_limit: int = Field(100, ge=1, description="Requests a minute per key.")
    max_conversation_history: int = Field(10, ge=0, le=100, description="Previous messages that the model is shown.")
    conversation_retention_days: int = Field(30, ge=1, le=365_000, description="Days after which turns are deleted.")
    max_concurrent_requests: int = Field(10, ge=1, description="Requests that run at once; more wait in a queue.")
    writer: str = Field(
        "auto", description="auto: the language model with a key, else excerpts; or the writer of an installed package."
    )
    suggestions: int = Field(
        12,
        ge=0,
        le=50,
        description="Number of suggested questions per edition, each tested by answering it; 0: none.",
    )
    agent_top_k: int = Field(5, ge=1, le=20, description="Number of passages that a question is answered from.")
    agent_score_threshold: float | None = Field(None, ge=0, le=1, description="Minimum relevance of a passage.")
    agent_max_turns: int = Field(50, ge=1, le=1000, description="Turns of a conversation that are remembered.")
    agent_max_calls: int = Field(4, ge=1, le=50, description="Maximum number of model calls for one question.")
    agent_temperature: float = Field(0.0, ge=0, le=2, description="Temperature of the writing model.")
    agent_max_tokens: int | None = Field(None, ge=16, le=100_000, description="Maximum number of tokens of one reply.")
    agent_prompt: Path | None = Field(None, description="A file that replaces the writing prompt.")

    judge: Literal["auto", "off"] = Field(
        "auto", description="auto: the writing model judges, or JUDGE_MODEL; off: only the book's words are shown."
    )
    judge_model: str | None = Field(None, description="The model that judges; default: the writing model.")
    judge_base_url: str | None = Field(
        None, description="Address of the judge's server; default: that of the writing model."
    )
    judge_api_key: HeaderSecret | None = Field(None, description="API key of the judge's server.")
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Comma-separated origins whose pages may call the API, or *."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Comma-separated host names that this server answers to, `*.example.com` or *; empty: on a "
        "loopback address localhost, this machine's name and IP addresses, else any.",
    )
    trusted_proxies: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Comma-separated addresses or networks of proxies whose X-Forwarded-For and -Proto are trusted."
    )
    book_title: str | None = Field(
        None, max_length=200, description="Name of the book on the reader page; default: that of its folder or website."
    )
    book_logo: Path | None = Field(None, description="An image file that the reader page shows next to the name.")
    accent: str | None = Field(None, description="Colour of links and buttons on the reader page, as #rrggbb.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Minimum level of log messages."
    )

    @field_validator("api_keys", "cors_origins", "allowed_hosts", "trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        parts = tuple(part.strip() for part in value.split(",") if part.strip())
        if info.field_name == "api_keys" and value and not parts:  # else the server would be open
            raise ValueError("contains no key; write one, or leave it out for a server without keys")
        return parts

    @field_validator("judge", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        """`on`, `1`, `true` and `yes` mean auto; `0`, `false` and `no` mean off."""
        words = {"on": "auto", "1": "auto", "true": "auto", "yes": "auto", "0": "off", "false": "off", "no": "off"}
        small = str(value).strip().lower()
        return words.get(small, small)

    @field_validator(*_ENGINES)
    @classmethod
    def _engine(cls, value: str, info: ValidationInfo) -> str:
        kind, built_in = _ENGINES[str(info.field_name)]
        if value not in built_in and value not in plugins.installed(kind):
            known = ", ".join((*built_in, *sorted(plugins.installed(kind))))
            raise ValueError(f"must be one of {known}; no installed package adds the {kind} {value!r}")
        return value

    @field_validator("agent_prompt")
    @classmethod
    def _prompt(cls, value: Path | None) -> Path | None:
        if value is not None and not (value.is_file() and value.read_text("utf-8", "replace").strip()):
            raise ValueError(f"{value} must be a text file that is not empty")
        return value

    @field_validator("pg_bin")
    @classmethod
    def _programs(cls, value: Path | None) -> Path | None:
        if value is not None and not (value / "postgres").is_file():
            raise ValueError(f"{value} must be the folder with the programs postgres, initdb and pg_ctl")
        return value

    @field_validator("book_logo")
    @classmethod
    def _logo(cls, value: Path | None) -> Path | None:
        if value is not None and not (value.is_file() and value.suffix.lower() in LOGO_TYPES):
            raise ValueError(f"{value} must be an image file: {' '.join(LOGO_TYPES)}")
        return value

    @field_validator("accent")
    @classmethod
    def _colour(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"#[0-9a-fA-F]{6}", value):
            raise ValueError("must be a colour such as #1a2b3c")
        return value

    @field_validator("gemini_base_url", "openai_base_url", "cohere_base_url", "judge_base_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is not None:
            _HTTP.validate_python(value)
        return value

    @field_validator("qdrant_url")
    @classmethod
    def _nodes(cls, value: str | None) -> str | None:
        for node in value.split(",") if value is not None else ():
            address = _HTTP.validate_python(node.strip())
            if address.username or address.password or address.query:  # it is shown, and the client would not send them
                raise ValueError("must have no user name, password or query; QDRANT_API_KEY is the key")
        return value

    @field_validator("database_url")
    @classmethod
    def _postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not value.get_secret_value().startswith(("postgres://", "postgresql://")):
            raise ValueError("must start with postgresql://")
        return value and _address(value)

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not value.get_secret_value().startswith(("redis://", "rediss://", "redis+unix://", "unix://")):
            raise ValueError("must start with redis:// or rediss://")
        return value and _address(value, one_host=True)

    @field_validator(*_EXTRAS)
    @classmethod
    def _installed(cls, value: Any, info: ValidationInfo) -> Any:
        extra, module = _EXTRAS[str(info.field_name)]
        if value is not None and find_spec(module) is None:
            raise ValueError(f"its client is not installed; run: pip install 'chapterverse[{extra}]'")
        return value

    @field_validator("api_keys")
    @classmethod
    def _digests(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for key in value:
            digest = key.get_secret_value()
            if digest.startswith(DIGEST) and not re.fullmatch(DIGEST + "[0-9a-f]{64}", digest):
                raise ValueError(f"{DIGEST} must be followed by 64 hexadecimal digits; `chapterverse key` writes one")
        return value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise ValueError(f"{origin!r} is not an origin; write it as https://docs.example.com")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"\*|(?:\*\.)?[\w-]{1,63}(?:\.[\w-]{1,63}){0,10}|[0-9a-fA-F:]{2,39}", name):
                raise ValueError(f"{name!r} is not a host name; write it as docs.example.com, without scheme and port")
        return value

    @field_validator("chapterverse_home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        try:
            home = value.expanduser().absolute()
        except RuntimeError:  # the home of an unknown user
            raise ValueError(f"{value}: there is no such user") from None
        if home.exists() and not home.is_dir():
            raise ValueError(f"{home} is a file, not a folder")
        return home

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read and validate all settings. Raise `ConfigurationError` that names each invalid variable.

        Every entry point calls it, so unsupported systems are refused here, too."""
        if sys.platform == "win32":  # no file locks, no limits for processes, no Unix sockets
            raise ConfigurationError("Chapterverse runs on Linux and macOS. On Windows, use WSL 2 or a container.")
        try:
            _check_env_file()
            return cls(**overrides)
        except UnicodeDecodeError:
            raise ConfigurationError(f"{ENV_FILE} is not UTF-8 text.") from None
        except OSError as failure:
            raise ConfigurationError(
                f"{failure.filename or 'the working folder'} cannot be read: {failure.strerror}"
            ) from None
        except ValidationError as failure:
            faults = [f"{str(e['loc'][0]).upper() if e['loc'] else 'settings'}: {problem(e)}" for e in failure.errors()]
            raise ConfigurationError("; ".join(faults)) from None
