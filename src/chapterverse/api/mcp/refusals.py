"""What is refused before the SDK sees it, such as a missing key, in the words of JSON-RPC, which its clients show."""

from pydantic import BaseModel

from chapterverse.models import ErrorResponse

_INVALID_REQUEST, _INTERNAL_ERROR = -32600, -32603


class RpcFault(BaseModel):
    """What went wrong; `data` is the body that other routes send."""

    code: int
    message: str
    data: ErrorResponse


class RpcError(BaseModel):
    """An answer to a request that was not read."""

    jsonrpc: str = "2.0"
    id: None = None
    error: RpcFault


def in_jsonrpc_words(body: ErrorResponse, status: int) -> RpcError:
    """The same error for a client of MCP."""
    code = _INVALID_REQUEST if status < 500 else _INTERNAL_ERROR
    return RpcError(error=RpcFault(code=code, message=body.message, data=body))
