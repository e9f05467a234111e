"""What a technician measures with a hand on the wheel, and what he is to write into the configuration then.

Two turns clockwise show swapped lines, a wrong number of counts and noise; four marks, where a peg touches the marker
and where the marker snaps over it in either sense, show where the pegs stand (physics README section 8).
"""

from __future__ import annotations

from typing import Final

from drivers.base import Answer
from drivers.encoder.options import Options

_MARKS: Final = {
    ("touch", 1): "contact dans le sens horaire",
    ("snap", 1): "claquement dans le sens horaire",
    ("touch", -1): "contact dans l'autre sens",
    ("snap", -1): "claquement dans l'autre sens",
}
_APART_MDEG: Final = 300
"""Two measurements of the same peg may differ by this; the cell is certain up to it."""
_SNAPS_MDEG: Final = (1000, 3500)
"""How far behind the touch a strap snaps."""
_LEAST_TURNS: Final = 1.5


class Commissioning:
    """Pure; positions are counts since the index."""

    __slots__ = ("_began", "_indexes", "_marks", "_odd", "_options", "_role")

    def __init__(self, role: str, options: Options) -> None:
        self._role, self._options = role, options
        self._began: int | None = None
        self._odd = 0
        self._indexes: list[int] = []
        self._marks: dict[tuple[str, int], float] = {}

    @property
    def guide(self) -> str:
        """What to do, in the order in which it is done."""
        order = f"calibrate {self._role}"
        steps = [
            f"{order} turn : puis tourner à la main de deux tours dans le sens horaire, lentement ; {order} turned.",
            f"{order} forget : après un changement de roue, de picots ou de lame ; puis 20 lancers libres.",
        ]
        if self._options.pegs:
            steps[1:1] = [
                f"Tourner dans le sens horaire jusqu'à ce qu'un picot touche la lame : {order} touch.",
                f"Tourner encore jusqu'à ce qu'elle claque : {order} snap. Les deux de même dans l'autre sens.",
                f"Laisser la lame libre entre deux picots et lire la case : {order} cell NUMÉRO.",
            ]
        return "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))

    def begin(self, c: int, odd: int) -> Answer:
        """The two turns begin at this count; so many edges were lost or impossible before."""
        self._began, self._odd = c, odd
        self._indexes.clear()
        return Answer(True, f"Tourner de deux tours dans le sens horaire, puis : calibrate {self._role} turned")

    def index(self, c: int) -> None:
        """The index has passed."""
        if self._began is not None:
            self._indexes.append(c)
            del self._indexes[:-8]

    def turned(self, c: int, odd: int) -> Answer:
        """What the two turns have shown."""
        if self._began is None:
            return Answer(False, f"Commencer par : calibrate {self._role} turn")
        o, counted = self._options, c - self._began
        odd -= self._odd
        wrong = []
        if not counted:
            return Answer(False, "Aucun mouvement vu : vérifier l'alimentation et les fils A et B.")
        laps = [abs(b - a) for a, b in zip(self._indexes, self._indexes[1:], strict=False)]
        turn = 4 * round(sum(laps) / len(laps) / 4) if laps else o.counts_per_turn
        if not laps:
            wrong.append(
                f"Index vu {len(self._indexes)} fois sur {abs(counted) / o.counts_per_turn:.1f} tours : "
                "refaire deux tours entiers, sinon vérifier son fil."
            )
        elif abs(turn - o.counts_per_turn) > 2:
            wrong.append(f"Un tour fait {turn} pas : écrire counts_per_turn = {turn}.")
        if abs(counted) < _LEAST_TURNS * turn:
            wrong.append(f"Vu {abs(counted) / turn:.2f} tour : refaire deux tours entiers.")
        if counted < 0:
            other = "cw" if o.direction == "ccw" else "ccw"
            wrong.append(f'A et B sont intervertis : écrire direction = "{other}" (si le sens était bien horaire).')
        if odd:
            wrong.append(f"{odd} fronts perdus ou impossibles, il en faut 0 : vérifier blindage et masse.")
        self._began = None
        seen = f"{abs(counted) / turn:.2f} tours, {turn} pas par tour, {odd} fronts perdus ou impossibles."
        return Answer(not wrong, " ".join([*wrong, seen]))

    def mark(self, what: str, position: int | None, sense: int) -> Answer:
        """The hand has stopped where a peg touches the marker, or where the marker has snapped, turning in `sense`."""
        if position is None:
            return Answer(False, "Position inconnue : faire passer l'index d'abord.")
        if not sense:
            return Answer(False, "Sens inconnu : tourner d'abord.")
        self._marks[what, sense] = position * 360_000 / self._options.counts_per_turn
        missing = [said for key, said in _MARKS.items() if key not in self._marks]
        noted = f"Noté : {_MARKS[what, sense]}."
        if missing:
            return Answer(True, f"{noted} Il manque : {', '.join(missing)}.")
        return self._pegs()

    def cell(self, number: int, position: int | None) -> Answer:
        """The marker hangs free in this cell."""
        o, pitch = self._options, 360_000 / self._options.cells
        if not 0 <= number < o.cells:
            return Answer(False, f"cell {number} : de 0 à {o.cells - 1}")
        if position is None:
            return Answer(False, "Position inconnue : faire passer l'index d'abord.")
        offset = self._offset() if len(self._marks) == len(_MARKS) else o.first_cell_mdeg
        behind = (position * 360_000 / o.counts_per_turn - offset) / pitch
        free = behind % 1 * pitch
        if not o.hysteresis_mdeg + _APART_MDEG < free < pitch - _APART_MDEG:
            return Answer(False, "La lame est trop près d'un picot : la laisser libre au milieu d'une case.")
        first = round(offset + (behind // 1 - number) * pitch) % 360_000
        same = (
            "déjà écrit" if abs((first - o.first_cell_mdeg + 180_000) % 360_000 - 180_000) <= _APART_MDEG else "écrire"
        )
        return Answer(True, f"{same} : first_cell_mdeg = {first}")

    def _offset(self) -> float:
        """The first touch behind the index, mean of both senses."""
        pitch = 360_000 / self._options.cells
        first = self._marks["touch", 1]
        return first + _apart(self._marks["touch", -1], first, pitch) / 2

    def _pegs(self) -> Answer:
        pitch, marks = 360_000 / self._options.cells, self._marks
        apart = abs(_apart(marks["touch", -1], marks["touch", 1], pitch))
        snaps = [(marks["snap", s] - marks["touch", s]) * s % pitch for s in (1, -1)]
        if apart > _APART_MDEG:
            return Answer(False, f"Les deux contacts diffèrent de {apart / 1000:.2f}° (0.30 au plus) : les refaire.")
        low, high = _SNAPS_MDEG
        if not all(low < snap < high for snap in snaps) or abs(snaps[0] - snaps[1]) > 2 * _APART_MDEG:
            return Answer(
                False,
                f"La lame claque {snaps[0] / 1000:.2f}° et {snaps[1] / 1000:.2f}° après le contact, attendu 1.0 à 3.5, "
                "à 0.6 près dans les deux sens : refaire les claquements.",
            )
        return Answer(
            True,
            f"écrire : hysteresis_mdeg = {round(0.8 * sum(snaps) / 2)} ; premier picot à "
            f"{self._offset() % pitch / 1000:.2f}° de l'index. Puis : calibrate {self._role} cell NUMÉRO",
        )


def _apart(one: float, other: float, pitch: float) -> float:
    """How far one peg stands from another, whichever pegs they are."""
    return (one - other + pitch / 2) % pitch - pitch / 2
