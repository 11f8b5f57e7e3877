"""The pages on the sources, errata and ledger, are complete; each of their rules is seen to fail."""

import notebook_tools as tools
import pytest
import source_checks

ERRATA = (tools.ROOT / "book" / "errata.md").read_text(encoding="utf-8")


def test_errata_are_complete():
    problems = source_checks.errata_problems(ERRATA)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("## E-7 ", "## E-77 ", "E-7: no entry"),
        (
            "What survives\n: the theorem, which",
            "What survives\n: \n\n: the theorem, which",
            "E-1: nothing under",
        ),
        ("Right\n: $2\\operatorname", "Write\n: $2\\operatorname", "E-1: nothing under 'Right'"),
        ("#the-repair", "#the-repairs", "E-10: notebooks/11_conditional_composition.ipynb has no section"),
        ("11_conditional_composition", "11_unconditional", "notebooks/11_unconditional.ipynb does not exist"),
        ("**See it:** [chapter 11, the repair]", "See [chapter 11, the repair]", "E-10: no demonstration"),
        ("$.344$", "$.354$", "E-7: no linked section shows .354"),
        ("Printed, in the text available to us\n: $\\frac1", "Printed\n: $\\frac1", "E-5: 'in the text"),
        (
            "step-2-one-row-one-number), where",
            "summary), where",
            "E-17: notebooks/14_balls_in_bins.ipynb has",
        ),
    ],
)
def test_errata_fault_is_seen(old, new, seen):
    assert old in ERRATA
    problems = source_checks.errata_problems(ERRATA.replace(old, new))
    assert any(problem.startswith(seen) or seen in problem for problem in problems), problems
