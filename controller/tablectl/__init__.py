"""The tool of technician, auditor and floor: exit 0 done, 1 the answer is no, 2 bad use or input, 3 not reachable."""
