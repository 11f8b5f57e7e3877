"""Write a file in one move: whoever reads it sees the old file or the new one, never a part.

A process that is killed while it writes leaves `.NAME.partial` beside the file, which the next one replaces.
"""

import os
from contextlib import suppress
from pathlib import Path


def write_text(path, text):
    """Replace a file by this text. Raises OSError that names the file, which is then as it was."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:  # a full disk, a folder that may not be written
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
