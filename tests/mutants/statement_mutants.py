"""For each test of the theorem index: how its statement is made false (used by mutation.py).

The table is statement_mutants.json: {file: {test: [mutation, …]}}. A mutation is [what is false, text, text instead], and where
it is not the test itself that changes, the name of the helper in its file or of the function of dplib. Each makes the
statement wrong, or claims more than it does: an upper bound that is 1% too small, never one that is larger.
"""

import json
from pathlib import Path

from mutants import FILES

TABLE = Path(__file__).with_suffix(".json")
MUTANTS = {
    f"{FILES[file]}::{test}": found
    for file, tests in json.loads(TABLE.read_text(encoding="utf-8")).items()
    for test, found in tests.items()
}
