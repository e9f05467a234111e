"""`tablectl settle`: cases on standard input, answers on standard output (`settle-format`); nothing else is loaded."""

from __future__ import annotations

import argparse
import json
import sys
from decimal import Decimal
from typing import Final

from controller.canonical import without_duplicates
from controller.errors import UsageError
from rules.cases import CaseError, answer_all

DIGITS_MAX: Final = 64
"""No amount and no number of turns has more; arithmetic with a million digits would never end."""


def run(_options: argparse.Namespace) -> int:
    """0 when every case was answered; raises UsageError, with nothing written, when the input is not of the form."""
    try:
        given = json.loads(
            sys.stdin.read(), parse_int=_whole, parse_float=_decimal, object_pairs_hook=without_duplicates
        )
    except (ValueError, RecursionError) as error:
        raise UsageError(f"standard input is not JSON: {error}") from error
    try:
        answers = json.dumps(answer_all(given), ensure_ascii=False, separators=(",", ":"))
        answers.encode()
    except CaseError as error:
        raise UsageError(str(error)) from error
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise UsageError(f"standard input: {half!r} is half a character, which no answer can carry") from error
    sys.stdout.write(answers + "\n")
    return 0


def _whole(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise ValueError(f"a number of {len(text)} digits; at most {DIGITS_MAX}")
    return int(text)


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if len(text) > DIGITS_MAX or abs(value.adjusted()) > DIGITS_MAX:
        raise ValueError(f"the number {text[:DIGITS_MAX]}; at most {DIGITS_MAX} digits")
    return value
