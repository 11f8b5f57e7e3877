#!/bin/sh
# Find a Python 3.11 and hand over to environment.py. Usage: sh tools/setup.sh book|test
set -eu
cd "$(dirname "$0")/.."

is_311() {
    "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in "${PYTHON:-}" python3.11 python3 python \
        /usr/bin/python3.11 /usr/local/bin/python3.11 /opt/homebrew/bin/python3.11 \
        "$HOME"/.pyenv/versions/3.11*/bin/python3; do
        if [ -n "$candidate" ] && is_311 "$candidate"; then
            echo "$candidate"
            return 0
        fi
    done
    if command -v uv >/dev/null 2>&1; then
        candidate=$(uv python find 3.11 2>/dev/null || true)
        if [ -n "$candidate" ] && is_311 "$candidate"; then
            echo "$candidate"
            return 0
        fi
    fi
    return 1
}

# A finished environment answers for itself, also where Python 3.11 has left the search path.
if [ -x .venv/bin/python ] && is_311 .venv/bin/python &&
    .venv/bin/python tools/environment.py --check "$@" 2>/dev/null; then
    exit 0
fi

if ! python=$(find_python); then
    echo "set-up: no Python 3.11 found." >&2
    echo "  The stored outputs of the notebooks belong to Python 3.11, so the book is built with it." >&2
    echo "  Install it (Debian and Ubuntu: apt-get install python3.11 python3.11-venv; macOS: brew install python@3.11;" >&2
    echo "  anywhere: uv python install 3.11), or name one: PYTHON=/path/to/python3.11 make book" >&2
    exit 1
fi
exec "$python" tools/environment.py "$@"
