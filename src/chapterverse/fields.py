"""Types of the fields of requests, with their validation and OpenAPI schema."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool, ValidationError
from pydantic.config import JsonDict

from chapterverse.errors import ValidationFailed

R = TypeVar("R", bound=BaseModel)

MAX_QUERY_CHARS = 2000
MAX_SELECTION_CHARS = 10_000
MAX_TOP_K = 20
MAX_COMMENT_CHARS = 1000

_UUID4 = r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$"


def _refuse_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain the NUL character; remove it and send the text again")
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


# Lengths are checked first, so that their errors are reported as such. The patterns are for the OpenAPI schema; the
# validators check the same with better messages.
_PLAIN: JsonDict = {"pattern": r"^[^\x00]*$"}
_NOT_BLANK: JsonDict = {"pattern": r"^[^\x00]*[^\s\x00][^\x00]*$"}
Text = Annotated[str, Field(json_schema_extra=_PLAIN), AfterValidator(_refuse_nul)]
Query = Annotated[
    str, Field(min_length=1, max_length=MAX_QUERY_CHARS, json_schema_extra=_NOT_BLANK), AfterValidator(_refuse_nul)
]
Selection = Annotated[str, Field(max_length=MAX_SELECTION_CHARS, json_schema_extra=_PLAIN), AfterValidator(_refuse_nul)]
Prefix = Annotated[str, Field(min_length=1, max_length=2000, json_schema_extra=_NOT_BLANK), AfterValidator(_refuse_nul)]
_Several = Annotated[list[Text], Field(min_length=1, max_length=100)]
OneOrMore = Annotated[_Several, BeforeValidator(_as_list, json_schema_input_type=Text | _Several)]
Score = Annotated[float, Field(ge=0.0, le=1.0)]
Threshold = Annotated[Score, BeforeValidator(refuse_non_number)]
TopK = Annotated[int, Field(ge=1, le=MAX_TOP_K), BeforeValidator(refuse_non_number)]
_MetadataName = Annotated[Text, Field(min_length=1, max_length=64)]
_MetadataNumber = Annotated[float, Field(ge=-(2**53), le=2**53, allow_inf_nan=False, strict=True)]
_MetadataText = Annotated[Text, Field(max_length=500)]
_MetadataValue = (
    StrictBool | _MetadataNumber | _MetadataText | Annotated[list[_MetadataText], Field(max_length=20)] | None
)
ThreadMetadata = Annotated[dict[_MetadataName, _MetadataValue], Field(max_length=20)]
SessionId = Annotated[str, AfterValidator(_uuid4), Field(json_schema_extra={"format": "uuid", "pattern": _UUID4})]
TurnId = Annotated[str, AfterValidator(_turn_id), Field(json_schema_extra={"format": "uuid", "pattern": _UUID4})]
Comment = Annotated[str, Field(max_length=MAX_COMMENT_CHARS, json_schema_extra=_PLAIN), AfterValidator(_refuse_nul)]


def problem(error: Mapping[str, Any]) -> str:
    """What is wrong with a field and, for common mistakes, what to do."""
    match error["type"], error.get("ctx"):
        case "string_too_short", {"min_length": 1}:
            return "must not be empty; write something"
        case "string_too_short", {"min_length": least}:
            return f"has {len(error['input']):,} characters; it must have {least:,} or more"
        case "string_too_long", {"max_length": most}:
            return f"has {len(error['input']):,} characters; shorten it to {most:,} or fewer"
        case "too_short", {"min_length": least}:
            return f"must have {least:,} or more values"
        case "too_long", {"max_length": most}:
            return f"must have {most:,} values or fewer"
        case ("greater_than_equal", {"ge": bound}) | ("less_than_equal", {"le": bound}):
            return f"must be {bound:g} or {'more' if 'ge' in error['ctx'] else 'less'}"
        case "literal_error", {"expected": expected}:
            return f"must be {expected}"
        case "missing", _:
            return "is required"
        case "extra_forbidden", _:
            return "there is no such field"
        case "string_type", _:
            return "must be a text"
        case "bool_type" | "bool_parsing", _:
            return "must be true or false"
        case "int_type" | "int_parsing" | "int_from_float", _:
            return "must be a whole number"
        case "model_attributes_type" | "model_type", _:
            return "must be a JSON object"
    return str(error["msg"]).removeprefix("Value error, ")


def problems(failure: ValidationError) -> str:
    """All that is wrong, each with the name of its field."""
    faults = ((".".join(map(str, error["loc"])), problem(error)) for error in failure.errors())
    return "; ".join(": ".join(filter(None, fault)) for fault in faults)


def read_request(kind: type[R], **fields: Any) -> R:
    """Make a request from arguments, for interfaces without JSON. Fields that are None are left out."""
    try:
        return kind.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as failure:
        raise ValidationFailed(problems(failure)) from None
