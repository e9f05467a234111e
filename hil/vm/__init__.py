"""The installed product in a machine with real pins: `python -m hil.vm RIG` proves it with one command.

machine   the virtual machine and what hangs on it      croupier   plays coups, step by step
ledger    what the floor heard, against the journal      trial      what is proved, in order
"""
