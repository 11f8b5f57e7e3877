"""Every exercise of the book: the digits that are asked for are enough, fewer are called close, mistakes stay apart."""

import decimal

import pytest

from dplib.lessons import course
from dplib.lessons.course import compare
from dplib.lessons.course.verdicts import verdict

RECORDS = {name: course._exercise(name) for name in course.identifiers() if "right" in course._exercise(name)}
WITH_DIGITS = {name: record for name, record in RECORDS.items() if "digits" in record}


def changed(value, change):
    """A stored answer with another value in place of each real number."""
    if isinstance(value, list):
        return [changed(part, change) for part in value]
    return change(value) if isinstance(value, float) else value


def rounding(digits, how):
    context = decimal.Context(prec=digits, rounding=how)
    return lambda value: float(context.create_decimal(repr(value)))


def said(name, answer):
    """The verdict on an answer that is written as the record writes it."""
    values = iter(compare.leaves(answer))

    def filled(right):
        return [filled(part) for part in right] if isinstance(right, list) else next(values)

    answer = filled(RECORDS[name]["right"])
    if "arguments" not in RECORDS[name]:
        return verdict(RECORDS[name], name, answer)
    results = {repr(given): result for given, result in zip(RECORDS[name]["arguments"], answer)}
    return verdict(RECORDS[name], name, lambda *given: results[repr(list(given))])


def real_parts(record):
    return [number for number, part in enumerate(compare.leaves(record["right"])) if isinstance(part, float)]


def test_every_answer_with_a_real_number_has_an_accuracy():
    assert len(WITH_DIGITS) > 70
    for name, record in RECORDS.items():
        assert bool(real_parts(record)) == (("digits" in record) != ("tolerance" in record)), name
        assert not {"digits", "tolerance"} <= set(record), name


@pytest.mark.parametrize("name", RECORDS)
def test_a_part_that_is_off_is_not_accepted(name):
    """By two units of the last digit, by 2 % where there are digits, by a quarter where there is a tolerance."""
    record = RECORDS[name]
    for number in real_parts(record):
        part = compare.leaves(record["right"])[number]
        if "tolerance" in record:
            steps = [0.25 * part]
        elif part == 0:
            steps = [1e-6]
        else:
            steps = [2 * compare.unit(part, record["digits"]), 0.02 * part]
        for step in steps:
            for sign in (-1, 1):
                answer = compare.leaves(record["right"])
                answer[number] += sign * step
                assert not said(name, answer)[0], (number, step)


@pytest.mark.parametrize("name", RECORDS)
def test_mistakes_keep_their_hints_and_are_not_near_the_answer(name):
    """At full length and rounded to the digits asked for; with a tolerance only at full length."""
    record = RECORDS[name]
    for mistake in record["mistakes"]:
        assert said(name, mistake["wrong"]) == (False, mistake["hint"])
        values = compare.leaves(mistake["wrong"])
        assert not compare.agree(record, record["right"], values)
        if "digits" in record:
            assert not compare.close(record["right"], values, *record["close"])
            rounded = changed(mistake["wrong"], rounding(record["digits"], "ROUND_HALF_EVEN"))
            assert said(name, rounded) == (False, mistake["hint"])
