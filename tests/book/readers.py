"""A page in one of two browsers, with the few things that a reader does: Chromium by Playwright, Firefox by its own remote control.

Firefox is the installed one, not a build for tests: it listens for Marionette, whose messages are lengths and JSON.
"""

import contextlib
import json
import socket
import subprocess
import time
from pathlib import Path

PATIENCE = 600  # seconds for one cell or one page


class Chromium:
    """A page in a new context of Chromium; whatever is not at the address is refused."""

    def __init__(self, browser, viewport):
        self.context = browser.new_context(viewport=viewport)
        self.page = self.context.new_page()

    def visit(self, url, where):
        self.page.unroute_all()
        self.page.route(lambda asked: not asked.startswith(where), lambda route: route.abort())
        self.page.goto(url, wait_until="load")

    def click(self, xpath):
        self.page.locator(f"xpath={xpath}").click(timeout=PATIENCE * 1000)

    def evaluate(self, function, argument=None):
        """The value of a JavaScript function of one argument in the page."""
        return self.page.evaluate(function, argument)

    def wait(self, function, argument=None):
        """Until the function gives a true value."""
        self.page.wait_for_function(function, arg=argument, timeout=PATIENCE * 1000)

    def close(self):
        self.context.close()


# No start page and no question; no network but this machine's, as every other host is asked of a port where nobody listens.
# Smooth scrolling: a click may look for a button that is on its way.
PREFERENCES = json.loads(Path(__file__).with_name("firefox.json").read_text(encoding="utf-8"))


class Firefox:
    """A running Firefox with one page, in a fresh profile."""

    def __init__(self, program, profile):
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [program, "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number = 0
        try:
            self.socket = socket.create_connection(("127.0.0.1", self._port(profile / "MarionetteActivePort")), timeout=PATIENCE)
            self.stream = self.socket.makefile("rb")
            self._receive()  # it says who it is
            self._ask("NewSession", capabilities={})
            self._ask("SetTimeouts", script=PATIENCE * 1000, pageLoad=PATIENCE * 1000)
        except BaseException:
            self.close()
            raise

    def _port(self, file):
        for _ in range(600):
            with contextlib.suppress(OSError, ValueError):
                return int(file.read_text())
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("Firefox did not start")

    def _receive(self):
        size = b""
        while (letter := self.stream.read(1)) != b":":
            if not letter:
                raise RuntimeError("Firefox has ended")
            size += letter
        return json.loads(self.stream.read(int(size)))

    def _ask(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, f"WebDriver:{command}", parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._receive()
        if error:
            raise RuntimeError(f"{command}: {error['error']}: {error['message']}")
        return result

    def visit(self, url, where):
        self._ask("Navigate", url=url)

    def click(self, xpath):
        self.wait("path => document.evaluate(path, document, null, 9, null).singleNodeValue", xpath)
        (element,) = self._ask("FindElement", using="xpath", value=xpath)["value"].values()
        self._ask("ElementClick", id=element)

    def evaluate(self, function, argument=None):
        return self._ask("ExecuteScript", script=f"return ({function})(arguments[0])", args=[argument])["value"]

    def wait(self, function, argument=None):
        poll = f"const [argument, done] = arguments, look = () => ({function})(argument) ? done(true) : setTimeout(look, 50); look();"
        self._ask("ExecuteAsyncScript", script=poll, args=[argument])

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=60)
