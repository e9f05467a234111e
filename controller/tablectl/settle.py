"""`tablectl settle`: cases on standard input, answers on standard output (`settle-format`); nothing else is loaded."""

from __future__ import annotations

import argparse
import json
import sys
from decimal import Decimal

from controller.errors import UsageError
from rules.cases import CaseError, answer_all


def run(_options: argparse.Namespace) -> int:
    """0 when every case was answered; raises UsageError, with nothing written, when the input is not of the form."""
    try:
        given = json.loads(sys.stdin.read(), parse_float=Decimal)
        answers = answer_all(given)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"standard input is not JSON: {error}") from error
    except CaseError as error:
        raise UsageError(str(error)) from error
    json.dump(answers, sys.stdout, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write("\n")
    return 0
