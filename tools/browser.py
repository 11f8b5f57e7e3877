"""Find a Chromium, or a Firefox, that runs. As a program: print the path of Chromium, exit 1 if there is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FIREFOX = ("firefox", "firefox-esr")
MAC_FIREFOX = "/Applications/Firefox.app/Contents/MacOS/firefox"


def runs(path, name):
    """Some systems carry a script of that name that only asks to install the browser."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and name in done.stdout.lower()


def playwright_browser():
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            return playwright.chromium.executable_path
    except Exception:  # Playwright is missing or cannot start: then it has no browser for us
        return None


def first_that_runs(paths, name="chrom"):
    return next((path for path in paths if path and Path(path).exists() and runs(path, name)), None)


def find_chromium():
    """Path of a Chromium or Chrome: $CHROMIUM, an installed one, or Playwright's own; None if there is none."""
    installed = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), *MAC]
    return first_that_runs(installed) or first_that_runs([playwright_browser()])


def find_firefox():
    """Path of a Firefox: $FIREFOX or an installed one; None if there is none. Tests of pages that compute run in it, too."""
    return first_that_runs([os.environ.get("FIREFOX"), *map(shutil.which, FIREFOX), MAC_FIREFOX], "firefox")


if __name__ == "__main__":
    found = find_chromium()
    print(found or "no Chromium found")
    sys.exit(found is None)
