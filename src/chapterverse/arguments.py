"""From what a caller gave by name to a checked request: for the interfaces that have no JSON to parse."""

from typing import TYPE_CHECKING, Any, TypeVar

from chapterverse.errors import ValidationFailed

if TYPE_CHECKING:
    from pydantic import BaseModel

R = TypeVar("R", bound="BaseModel")


def read_request(kind: type[R], **fields: Any) -> R:
    """The request that the fields make; those that are None were not given."""
    from pydantic import ValidationError

    try:
        return kind.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as failure:
        faults = [(".".join(map(str, e["loc"])), e["msg"].removeprefix("Value error, ")) for e in failure.errors()]
        raise ValidationFailed("; ".join(": ".join(filter(None, fault)) for fault in faults)) from None
