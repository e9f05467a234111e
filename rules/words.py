"""The one catalogue of French sentences: a code and its values become what people read and hear."""

from __future__ import annotations

from typing import Final

CATALOGUE: Final[dict[str, str]] = {
    # --- refusals of stakes ---
    "sous_le_minimum": "Mise de {cents} centimes sous le minimum de {least}",
    "au_dessus_du_maximum": "Mise totale de {total} centimes au-dessus du maximum de {most} : {excess} de trop",
}


def text(code: str, **values: object) -> str:
    """The sentence for `code`; raises KeyError for a code that has none (a bug, found by the tests)."""
    return CATALOGUE[code].format(**values)
