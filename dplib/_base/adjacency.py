"""Answers that say which datasets are told apart."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

Question = TypeVar("Question", bound=Callable)


def says_adjacency(question: Question) -> Question:
    """A method whose answers say which datasets are told apart: the `_adjacency` of its mechanism."""

    @functools.wraps(question)
    def asked(self, *arguments, **options):
        return replace(question(self, *arguments, **options), adjacency=self._adjacency)

    return cast(Question, asked)
