"""Money: integer cents, exact fractions, and the one way an amount is written on a wire (R-GEN-02)."""

from __future__ import annotations

from fractions import Fraction
from typing import NewType

Cents = NewType("Cents", int)
"""A whole number of euro cents."""


def to_wire(amount: Fraction | int) -> int | str:
    """An amount as an integer of cents, or as `"n/d"` where the text leaves a fraction of a cent."""
    exact = Fraction(amount)
    return exact.numerator if exact.denominator == 1 else f"{exact.numerator}/{exact.denominator}"


def from_wire(amount: int | str) -> Fraction:
    """The exact amount behind `to_wire`; raises ValueError on anything else."""
    if isinstance(amount, bool):
        raise ValueError("an amount is a whole number of cents or 'n/d'")
    return Fraction(amount)
