"""Find a Chromium that runs. As a program: print its path, exit 1 if there is none."""

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


def runs(path):
    """Some systems carry a script of that name that only asks to install the browser."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "chrom" in done.stdout.lower()


def playwright_browser():
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            return playwright.chromium.executable_path
    except Exception:  # Playwright is missing or cannot start: then it has no browser for us
        return None


def find_chromium():
    """Path of a Chromium or Chrome: $CHROMIUM, an installed one, or Playwright's own; None if there is none."""
    candidates = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), *MAC]
    for path in candidates:
        if path and Path(path).exists() and runs(path):
            return path
    path = playwright_browser()
    return path if path and Path(path).exists() and runs(path) else None


if __name__ == "__main__":
    found = find_chromium()
    print(found or "no Chromium found")
    sys.exit(found is None)
