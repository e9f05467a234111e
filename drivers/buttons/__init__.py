"""Contacts: the croupier's buttons, and the contact of a lid (PROTOCOL.md)."""

from drivers.base import Family
from drivers.buttons.decoder import Contact, Options

FAMILY = Family(name="buttons", kind="edges", options=Options, decoder=Contact, contacts=True)
