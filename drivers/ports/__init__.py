"""Ports: the only modules of this room that touch a file descriptor."""
