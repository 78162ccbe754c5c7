"""Serves a folder on its own origin, and replaces `site.test` and `chapterverse.test` with real addresses."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Host:
    """A running site. The address of Chapterverse and the headers can be changed while it runs."""

    folder: Path
    url: str = ""
    chapterverse: str = "http://chapterverse.test"
    headers: Mapping[str, str] = field(default_factory=dict)


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *request: object, host: Host) -> None:
        self.host = host
        super().__init__(*request, directory=str(host.folder))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.path.partition("?")[0].endswith("/"):
            path /= "index.html"
        if path.suffix not in {".html", ".xml"} or not path.is_file():
            super().do_GET()
            return
        text = path.read_text("utf-8").replace("http://chapterverse.test", self.host.chapterverse)
        body = text.replace("http://site.test", self.host.url).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8" if path.suffix == ".html" else "text/xml")
        self.send_header("Content-Length", str(len(body)))
        for name, value in self.host.headers.items():
            self.send_header(name, value.replace("http://chapterverse.test", self.host.chapterverse))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextmanager
def hosting(folder: Path) -> Iterator[Host]:
    """Serves a folder inside the `with` block."""
    host = Host(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, host=host)) as server:
        host.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield host
        server.shutdown()
        thread.join(30)
