"""Reads and writes the files of baselines, proofs and reports."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from chapterverse.errors import ValidationFailed

Model = TypeVar("Model", bound=BaseModel)


def load_model(kind: type[Model], path: Path, wanted: str) -> Model:
    """Read a model from a JSON file. `wanted`: the expected kind of file and how to make one, for the error."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as failure:
        raise ValidationFailed(f"{path} cannot be read: {failure.strerror}") from None
    except ValidationError:
        raise ValidationFailed(f"{path} is not {wanted}") from None


def save_text(text: str, path: Path, option: str = "") -> Path:
    """Write a file and the folders above it. The file is written in place: it may be a pipe or a link, and it keeps its
    mode. `option`: the option that named it, for the error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as failure:
        raise ValidationFailed(f"{option} {path}: cannot be written: {failure.strerror}".strip()) from None
    return path


def save_model(model: BaseModel, path: Path, option: str = "") -> Path:
    """Write a model as JSON."""
    return save_text(model.model_dump_json(indent=1) + "\n", path, option)
