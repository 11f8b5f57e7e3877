"""Certified numbers inside the tools that people already run.

    events           trees of dp_accounting's events as dominating pairs, without importing dp_accounting
    account          what a list of releases costs together: a Bracket, or an UpperBound
    dp_accounting    a `PrivacyAccountant` for whatever asks for one
    opacus           an accountant for Opacus
    attack           what an attacker can do: true positive rates and mu, from brackets of delta
    ledger           releases over months, kept in a file (`dplib.Ledger`)
    command_line     python -m dplib

What belongs to another package is imported where it is used; this room itself needs none of them.

>>> from dp_accounting import GaussianDpEvent
>>> from dplib import events
>>> print(f"{events.account(GaussianDpEvent(2.0)).epsilon(1e-6).upper:.4f}")
2.2541
"""
