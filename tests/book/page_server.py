"""A server of the built book that says nothing."""

import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A browser that leaves in the middle of a page is nothing to report."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def server(folder):
    """An HTTP server for a folder, at a free port of this machine."""
    return Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
