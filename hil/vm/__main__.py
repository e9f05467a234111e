"""Entry point: `python -m hil.vm RIG [--seed N] [--report FILE]`; exit 0 when everything held."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from hil.floor import RigError
from hil.vm.machine import Vm
from hil.vm.trial import Proof, prove


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m hil.vm", description="Proves the installed product in a VM.")
    parser.add_argument("rig", type=Path, metavar="RIG", help="folder of the machine, already built (its `vm build`)")
    parser.add_argument("--seed", type=int, default=4, help="of the numbers, and of the moments of the power cuts")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write what held as JSON")
    options = parser.parse_args()
    proof = Proof()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the machine is switched off all the same
    try:
        vm = Vm(options.rig)
        with tempfile.TemporaryDirectory(prefix="vm-") as folder:
            asyncio.run(prove(vm, Path(folder), proof, options.seed))
    except* (RigError, TimeoutError, OSError, json.JSONDecodeError) as errors:
        proof.check("the proof itself came to its end", errors.exceptions, False)
    minutes = round((time.monotonic() - proof.began) / 60, 1)
    print(f"{proof.held} held, {proof.failed} did not; {minutes} minutes, seed {options.seed}")
    if options.report is not None:
        report = {"seed": options.seed, "minutes": minutes, "machine": proof.machine, "lines": proof.lines}
        options.report.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if proof.failed else 0


if __name__ == "__main__":
    sys.exit(main())
