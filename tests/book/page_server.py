"""A server of the built book, with the headers that a careful host would send."""

import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import policy


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def end_headers(self):
        """A page's own policy goes into its header too; only a header can forbid frames."""
        self.send_header("X-Content-Type-Options", "nosniff")
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if path.suffix == ".html" and path.is_file():
            stated = policy.stated(path.read_text(encoding="utf-8"))
            if stated:
                self.send_header("Content-Security-Policy", f"{stated}; frame-ancestors 'none'")
        super().end_headers()


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A browser that leaves in the middle of a page is nothing to report."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def server(folder, port=0):
    """An HTTP server for a folder, on this machine only. Port 0 takes a free one."""
    return Server(("127.0.0.1", port), functools.partial(Quiet, directory=str(folder)))
