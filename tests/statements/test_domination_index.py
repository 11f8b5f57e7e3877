"""Each statement of the theorem index that compares divergences has a property on random instances."""

import ast
import re

import pytest
from folders import ROOT

# Files with properties, whose docstrings name the statements that they try.
FILES = ("test_domination*.py", "test_properties*.py", "test_two_sided_statements.py", "test_displacing_statements.py", "test_phases_of_bins.py", "test_allocation_statements.py", "test_wide.py", "test_large_batches.py",
         "test_conditional_composition.py", "test_few_participations.py", "test_shuffled_tree.py", "test_field_statements.py")

# Statements that say that one divergence, delta or epsilon is at most another one, for whole classes of laws.
DOMINATION = set(
    """C-1 C-3 C-4 C-7 C-8 C-9 C-9m R-3.4 M-B G-2.9 M-K G-1.1 G-3.1 G-3.3 G-3.3t G-4L M-F5 M-C.5 M-5.1 M-5.2r ZW-0 ZW-1
    ZW-3 ZW-4 ZW-4m ZW-6 R-0 R-A11 R-5.1 R-5.2 R-6 M-0 M-0a N-3.2 N-K A-14 N-5 A-19 M-3.1 M-3.1s M-B.4 M-C.3 M-Alg1 M-Alg2
    M-4.3 M-few M-once M-p A-10 A-11 A-12 A-13 A-15 A-16 A-18 A-21 A-22 A-23 A-24 A-25 A-26 A-27 A-28 A-29 A-5 A-6""".split()
)

# Definitions, formulas, limits, errors of estimates, examples: they order no two divergences of a class of laws.
# [N-2.1], [N-2.1s] are implications about any test; how often it accepts a false claim is measured in test_coverage_study.py.
OTHERS = set(
    """C-2 C-5 C-6 C-10 M-D N-3.1 G-2.8 M-4.2 G-2.5 G-4 ZW-2 ZW-5 ZW-7 R-4 R-A1 R-A9 R-A10 R-A2 R-A7 R-2.10 R-5.3 R-5.4 R-5.4r
    R-6.1 R-6.2 R-6.3 R-6.2x M-0r M-0s M-E M-tree M-treeL N-BLT N-RMSE N-RMSEl M-5.2 N-A M-low N-MC N-2.1 N-2.1s N-grad
    N-gradI N-gradP N-gradS A-1 A-2 A-3 A-4 A-7 A-8 A-20 A-17""".split()
)


@pytest.fixture(scope="module")
def index():
    return (ROOT / "book" / "theorems.md").read_text(encoding="utf-8")


def tags(text):
    """Those of the rows of the table and of the boxes."""
    rows = re.findall(r"^\| (\w+-[\w.]+) \|", text, re.M)
    boxes = re.findall(r"^````\{prf:\w+\} \[([^\]]+)\]", text, re.M)
    return set(rows) | set(boxes)


def test_every_statement_is_sorted(index):
    """A new statement has to go to one of the two lists."""
    found = tags(index)
    assert found == DOMINATION | OTHERS
    assert not DOMINATION & OTHERS


def test_no_statement_on_domination_counts_as_another(index):
    for tag, box in re.findall(r"^````\{prf:\w+\} \[([^\]]+)\][^\n]*\n(.*?)^````", index, re.M | re.S):
        if re.search(r"\bdominat(es|ed)\b|H_\\alpha\([^)]*\)[^$]*\\le", box):
            assert tag in DOMINATION, tag


def _is_property(node):
    """A function that Hypothesis calls: decorated by `given(...)`."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(isinstance(d, ast.Call) and isinstance(d.func, ast.Name) and d.func.id == "given" for d in decorators)


@pytest.fixture(scope="module")
def tried():
    """The tags in the docstrings of all properties."""
    files = [path for pattern in FILES for path in (ROOT / "tests").glob(f"*/{pattern}")]
    nodes = [node for path in files for node in ast.parse(path.read_text(encoding="utf-8")).body]
    texts = [ast.get_docstring(node) or "" for node in nodes if _is_property(node)]
    return {tag for text in texts for tag in re.findall(r"\[(\w+-[\w.]+)\]", text)}


@pytest.mark.parametrize("tag", sorted(DOMINATION))
def test_some_property_tries_it(tag, tried):
    assert tag in tried
