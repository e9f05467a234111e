"""Ports and their tasks: the only modules of this room that touch a file descriptor."""
