"""The page on trust says what the committed results say: its numbers are computed from them here."""

import json
import re

import fuzz_cases
import mutation as mutation_runs
import notebook_tools as tools
import policy
import pytest
from mutants import DANGEROUS
from source_checks import RESULTS, result

from dplib.lessons import course

PAGE = tools.ROOT / "book" / "trust.md"
DATA = tools.ROOT / "tests" / "data"


def reference_values():
    rows = result("reference_values")["tables"]["Values by file"]
    total, answered, inside, refused = (
        sum(row[key] for row in rows) for key in ("values", "answered", "inside", "refused")
    )
    return f"{total} values: {answered} answered, {inside} inside; {refused} refused"


def reliability():
    rows = result("reliability")["tables"]["Cases (one process each, both directions)"]
    return f"{len(rows)} cases, {sum(row['verdict'] == 'right' for row in rows)} right"


def certificates():
    claims = result("certificates")["claims"]
    (claim,) = (claim for claim in claims if "below their reference" in claim["what"])
    total = re.search(r"of (\d+)", claim["what"])[1]
    return f"{claim['measured']} of {total} below the reference value"


def schemes():
    rows = result("one_axis_attack")["tables"]["By scheme"]
    settings, kinds = sum(row["settings"] for row in rows), len({row["kind"] for row in rows})
    wrong = sum(row["outside"] for row in rows if row["method"] != "estimate")
    return f"{settings:,} random settings of {kinds} kinds, {wrong} bounds on the wrong side"


def assertions():
    """A round number that the chapters exceed, so that a new cell does not change the page."""
    cells = [cell for path in tools.chapters() for cell in tools.code_cells(tools.read(path))]
    count = sum(len(re.findall(r"(?m)^\s*assert ", tools.source(cell))) for cell in cells)
    return f"more than {count // 100 * 100} assertions in the chapters"


def coverage():
    runner = (tools.ROOT / "tools" / "run_tests.py").read_text(encoding="utf-8")
    least = re.search(r"--cov-fail-under=(\d+)", runner)[1]
    return f"at least {least}% of the lines"


def truth():
    values = json.loads((DATA / "truth_values.json").read_text(encoding="utf-8"))["values"]
    kinds = {value["mechanism"] for value in values}
    sealed = (DATA / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    digits = min(value["digits"] for value in values)
    return (
        f"{len(values)} values of {len(kinds)} kinds to at least {digits} digits, all inside; "
        f"{len(sealed)} tables sealed"
    )


def properties():
    """Functions that Hypothesis calls, and statements of the theorem index that have one."""
    tests, count = tools.ROOT / "tests", 0
    for pattern in ("test_properties*.py", "test_domination*.py", "test_vector_mixture.py"):
        count += sum(file.read_text(encoding="utf-8").count("\n@given(") for file in tests.glob(f"*/{pattern}"))
    index = (tests / "statements" / "test_domination_index.py").read_text(encoding="utf-8")
    statements = len(re.search(r'DOMINATION = set\(\s*"""(.*?)"""', index, re.S)[1].split())
    return f"{count} properties, no exception; {statements} statements on divergences have theirs"


def statistics():
    rows = result("coverage_study")["tables"]["Failures, with the 95% interval of their frequency"]
    return f"{sum(row['holds'] for row in rows)} of {len(rows)} statements within what they state"


def determinism():
    tests = (tools.ROOT / "tests" / "house" / "test_determinism.py").read_text(encoding="utf-8")
    return f"at least {re.search(r'len.here. >= ([0-9]+)', tests)[1]} results: bit for bit with 1 and 2 threads and workers"


def peers():
    found = result("peers")
    others = [row for row in found["rows"] if row["library"] != "dplib"]
    silent = sum("failure" in row for row in others)
    return f"{len(found['versions']) - 2} libraries and one paper's bound, {len(others)} questions, {silent} without an answer"


def mutation():
    found = result("mutation")["dangerous"]
    killed = sum(mutation_runs.is_killed(one) for one in found.values())
    assert len(found) == len(DANGEROUS)
    return f"{killed} of {len(DANGEROUS)} dangerous changes are noticed"


def statements():
    found = json.loads((RESULTS / "statements.json").read_text(encoding="utf-8"))
    verdicts = [one["verdict"] for mutations in found.values() for one in mutations.values()]
    assert set(verdicts) == {"killed"}
    return f"{len(verdicts)} false versions of the statements of the [index](theorems.md), all noticed"


def fuzz():
    return f"{len(fuzz_cases.cases())} functions and questions, {len(course.identifiers())} checks of exercises"


def calculator():
    tests = (tools.ROOT / "tests" / "book" / "test_calculator.py").read_text(encoding="utf-8")
    return f"on {re.search(r'On ([0-9]+) random settings', tests)[1]} random settings both brackets meet"


def supply_chain():
    locked = (tools.ROOT / "requirements.txt").read_text(encoding="utf-8")
    packages = re.split(r"(?m)^(?=[A-Za-z0-9])", locked)[1:]
    assert all("--hash=sha256:" in package for package in packages)
    return f"{len(packages)} packages pinned with hashes; {len(policy.KNOWN)} inline scripts"


FACTS = [
    reference_values,
    reliability,
    certificates,
    schemes,
    assertions,
    coverage,
    truth,
    properties,
    statistics,
    determinism,
    peers,
    mutation,
    statements,
    fuzz,
    calculator,
    supply_chain,
]


@pytest.mark.parametrize("fact", FACTS)
def test_the_page_says_what_the_results_say(fact):
    assert fact() in PAGE.read_text(encoding="utf-8")


def test_every_row_of_the_evidence_has_a_command_and_a_result():
    table = PAGE.read_text(encoding="utf-8").partition("## The evidence")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    makefile = (tools.ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(rows) >= len(FACTS)
    for question, outcome, done, command in rows:
        target = re.search(r"`[^`]*make ([a-z-]+)", command)
        assert target and re.search(rf"(?m)^{target[1]}:", makefile), command
        assert min(len(question), len(done), len(outcome)) > 8, question
