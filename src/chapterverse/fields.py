"""Types of the fields of requests, with their validation and OpenAPI schema."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StrictBool,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.config import JsonDict

from chapterverse.errors import ValidationFailed

R = TypeVar("R", bound=BaseModel)

MAX_QUERY_CHARS = 2000
MAX_SELECTION_CHARS = 10_000
MAX_TOP_K = 20
MAX_COMMENT_CHARS = 1000

_UUID4 = r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$"


_HALF_CHARACTER = "has half of a character (a lone UTF-16 surrogate); remove it and send the text again"


def _refuse_unstorable(text: str) -> str:
    """Refuse what the database cannot store and a language model cannot be sent."""
    if "\x00" in text:
        raise ValueError("must not contain the NUL character; remove it and send the text again")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(_HALF_CHARACTER) from None
    return text


def _as_list(value: object) -> object:
    if value is not None and not isinstance(value, str | list | tuple):
        raise ValueError("must be a text or a list of texts")
    return [value] if isinstance(value, str) else value


def refuse_non_number(value: object) -> object:
    """Refuse strings and booleans, which Pydantic would convert to numbers."""
    if isinstance(value, str | bool):
        raise ValueError("must be a number")
    return value


def _uuid4(value: str) -> str:
    if not re.fullmatch(_UUID4, value):
        raise ValueError("must be a UUID v4 of 36 characters, as an answer has it")
    return value.lower()


def _turn_id(value: str) -> str:
    if not re.fullmatch(_UUID4, value):
        raise ValueError("must be the turn_id of an answer, a UUID v4 of 36 characters")
    return value.lower()


def _metadata_value(value: object, read: ValidatorFunctionWrapHandler) -> object:
    try:
        return read(value)
    except ValidationError as failure:  # has an error for each type that it could be
        ours = (problem(error) for error in failure.errors() if error["type"] == "value_error")
        kinds = "must be a text of up to 500 characters, a number, true, false, null or a list of up to 20 texts"
        raise ValueError(next(ours, kinds)) from None


# Lengths are checked first, so that their errors are reported as such. The patterns are for the OpenAPI schema; the
# validators check the same with better messages.
_PLAIN: JsonDict = {"pattern": r"^[^\x00]*$"}
_NOT_BLANK: JsonDict = {"pattern": r"^[^\x00]*[^\s\x00][^\x00]*$"}
Text = Annotated[str, Field(json_schema_extra=_PLAIN), AfterValidator(_refuse_unstorable)]
Query = Annotated[
    str,
    Field(min_length=1, max_length=MAX_QUERY_CHARS, json_schema_extra=_NOT_BLANK),
    AfterValidator(_refuse_unstorable),
]
Selection = Annotated[
    str, Field(max_length=MAX_SELECTION_CHARS, json_schema_extra=_PLAIN), AfterValidator(_refuse_unstorable)
]
Prefix = Annotated[
    str, Field(min_length=1, max_length=2000, json_schema_extra=_NOT_BLANK), AfterValidator(_refuse_unstorable)
]
_Several = Annotated[list[Text], Field(min_length=1, max_length=100)]
OneOrMore = Annotated[_Several, BeforeValidator(_as_list, json_schema_input_type=Text | _Several)]
Score = Annotated[float, Field(ge=0.0, le=1.0)]
Threshold = Annotated[Score, BeforeValidator(refuse_non_number)]
TopK = Annotated[int, Field(ge=1, le=MAX_TOP_K), BeforeValidator(refuse_non_number)]
_MetadataName = Annotated[Text, Field(min_length=1, max_length=64)]
_MetadataNumber = Annotated[float, Field(ge=-(2**53), le=2**53, allow_inf_nan=False, strict=True)]
_MetadataText = Annotated[Text, Field(max_length=500)]
_MetadataValue = Annotated[
    StrictBool | _MetadataNumber | _MetadataText | Annotated[list[_MetadataText], Field(max_length=20)] | None,
    WrapValidator(_metadata_value),
]
ThreadMetadata = Annotated[dict[_MetadataName, _MetadataValue], Field(max_length=20)]
SessionId = Annotated[str, AfterValidator(_uuid4), Field(json_schema_extra={"format": "uuid", "pattern": _UUID4})]
TurnId = Annotated[str, AfterValidator(_turn_id), Field(json_schema_extra={"format": "uuid", "pattern": _UUID4})]
Comment = Annotated[
    str, Field(max_length=MAX_COMMENT_CHARS, json_schema_extra=_PLAIN), AfterValidator(_refuse_unstorable)
]


# Our messages by Pydantic's error type: the problem and, for common mistakes, what to do.
_WORDS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a JSON object",
    "extra_forbidden": "there is no such field",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than_equal": "must be {ge:g} or more",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "has too many digits",
    "int_type": "must be a whole number",
    "less_than_equal": "must be {le:g} or less",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "missing": "is required",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "has {length:,} characters; shorten it to {max_length:,} or fewer",
    "string_too_short": "has {length:,} characters; it must have {min_length:,} or more",
    "string_unicode": _HALF_CHARACTER,
    "string_type": "must be a text",
    "too_long": "must have {max_length:,} values or fewer",
    "too_short": "must have {min_length:,} or more values",
    "union_tag_invalid": "{discriminator} must be one of {expected_tags}",
    "union_tag_not_found": "must have {discriminator}",
}


def problem(error: Mapping[str, Any]) -> str:
    """Return our message for an error of Pydantic."""
    given, kind, context = error.get("input"), error["type"], error.get("ctx") or {}
    if (kind == "string_too_short" and context["min_length"] == 1) or context.get("pattern") == r"\S":
        return "must not be empty; write something"
    length = len(given) if isinstance(given, str) else 0
    words = _WORDS.get(kind)
    return words.format(length=length, **context) if words else str(error["msg"]).removeprefix("Value error, ")


def faults_in(failure: ValidationError) -> list[dict[str, Any]]:
    """Return each invalid field with its problem."""
    return [{"field": ".".join(map(str, error["loc"])), "problem": problem(error)} for error in failure.errors()]


def listed(faults: Sequence[Mapping[str, Any]]) -> str:
    """Return the faults in one line, each with the name of its field."""
    return "; ".join(": ".join(filter(None, (fault["field"], fault["problem"]))) for fault in faults)


def invalid(faults: Sequence[Mapping[str, Any]]) -> ValidationFailed:
    """Return the error that lists these faults."""
    return ValidationFailed(listed(faults), details={"errors": list(faults)})


def read_request(kind: type[R], **fields: Any) -> R:
    """Make a request from arguments, for interfaces without JSON. Fields that are None are left out."""
    try:
        return kind.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as failure:
        raise invalid(faults_in(failure)) from None
