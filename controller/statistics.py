"""Is the wheel still fair? Counts of its results by sense of rotor and ball, looked at when a window is full.

    valid result, no hand in it ──► waits (it may be revised) ──► the next coup ends: it counts in each window

Windows do not overlap: a look at every 1,000 and every 5,000 spins of a series, and with these one at all of them.
Every look asks several tests, so that a chance is multiplied by how many are asked in 5,000 spins: a fair wheel is
suspected in one of a hundred such stretches of a series (warning) and accused in one of a thousand (alarm). A look
never touches a result: an alarm sends a technician to the wheel.

What is counted is part of the journal's state, as text: it is committed with the results that it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from controller import wire
from controller.chance import Spin, Tally, Wheel
from controller.clock import Clock
from controller.guard import Note
from controller.results import Told
from rules.decisions import CoupEnded, Status
from rules.facts import BallDropped, BallLaunched, Direction
from rules.game import Game
from rules.words import text

SHORT: Final = 1_000
LONG: Final = 5_000
ALL: Final = "all"
LOOKS: Final = LONG // SHORT + 2
"""Looks in the stretch of a long window: the short ones, the long one, and all."""
MILLION: Final = 1_000_000
WARNING_PPM: Final = 10_000
ALARM_PPM: Final = 1_000

Level = Literal["ok", "warning", "alarm"]
LEVELS: Final = ("ok", "warning", "alarm")


@dataclass(slots=True, kw_only=True)
class Series:
    """What was counted of one sense of rotor and ball, and the last look at each window."""

    windows: dict[str, Tally]
    looks: dict[str, wire.Look] = field(default_factory=dict)

    def level(self) -> Level:
        """The worst of the last looks."""
        return _worst(look.level for look in self.looks.values())


@dataclass(slots=True, kw_only=True)
class Counts:
    """Everything that is kept."""

    wheel: str
    values: tuple[str, ...]
    """Of its cells, in their order."""
    since: str | None = None
    waiting: tuple[tuple[int, int, int], str, Spin] | None = None
    """The last coup (seance, partie, coup), its series, and what it will add."""
    series: dict[str, Series] = field(default_factory=dict)


class Statistics:
    """Owns the counts of the table's wheel; `serial` names it, another one begins anew."""

    def __init__(
        self,
        game: Game,
        options: Any,
        serial: str,
        *,
        kept: str,
        alarm: Callable[[str, str, str], None],
        clear: Callable[[str], None],
        note: Note,
        clock: Clock,
    ) -> None:
        """`kept` is a `snapshot` out of the journal, empty before the first; what cannot be read is begun anew."""
        self._game, self._wheel, self._serial = game, Wheel.of(game, options), serial
        self._alarm, self._clear, self._note, self._clock = alarm, clear, note, clock
        self._arc: tuple[int, int] | None = None
        try:
            self._counts = msgspec.json.decode(kept, type=Counts) if kept else self._none()
        except msgspec.MsgspecError:  # of another version: no reason to keep a table from playing
            self._counts = Counts(wheel="unreadable", values=())
        self._text = kept

    def begin(self) -> None:
        """At the start: another wheel than the journal knows is journalled with the last counts of that one."""
        if (self._counts.wheel, self._counts.values) != (self._serial, self._wheel.values):
            self.reset("wheel")

    def left_rim(self, fact: BallLaunched | BallDropped) -> None:
        """A ball runs, or has left the rim on an arc that its beams tell."""
        match fact:
            case BallDropped(arc_from_deg=int(begin), arc_deg=int(length)):
                self._arc = (begin, length)
            case _:
                self._arc = None

    def ended(self, ended: CoupEnded, ball: Direction | None, *, maintenance: bool) -> None:
        """A coup has its status, or another one: it counts once the next coup can no longer change it."""
        coup = (ended.seance, ended.partie, ended.coup)
        if maintenance:
            return
        if self._counts.waiting is not None and self._counts.waiting[0] != coup:
            self._count(*self._counts.waiting[1:])
        self._counts.waiting, self._text = None, ""
        if ended.status is Status.VALID and ended.manual is None and ended.outcome is not None:
            key = "/".join(sense for sense in (ended.direction, ball) if sense is not None) or "any"
            self._counts.waiting = (coup, key, self._wheel.spin(self._game, ended.outcome, self._arc))
        self._arc = None

    def reset(self, why: str) -> None:
        """Begin anew: another wheel, or one that was levelled or mended."""
        spins = {key: series.windows[ALL].spins for key, series in self._counts.series.items()}
        self._note("statistics", {"reset": why, "wheel": self._serial, "spins": spins})
        for key in self._counts.series:
            self._clear(f"statistics:{key}")
        self._counts, self._text = self._none(), ""
        self._counts.since = self._clock.utc()

    def snapshot(self) -> str:
        """For the constructor; as text, for the journal's state is written more often than a coup ends."""
        self._text = self._text or msgspec.json.encode(self._counts).decode()
        return self._text

    def report(self) -> wire.Statistics:
        """For `health`."""
        series = self._counts.series
        return wire.Statistics(
            wheel=self._serial,
            since=self._counts.since,
            level=_worst(entry.level() for entry in series.values()),
            series={key: self._told(entry) for key, entry in series.items()},
        )

    def _none(self) -> Counts:
        return Counts(wheel=self._serial, values=self._wheel.values)

    def _count(self, key: str, spin: Spin) -> None:
        counts, windows = self._counts, (str(SHORT), str(LONG), ALL)
        counts.since = counts.since or self._clock.utc()
        if key not in counts.series:
            counts.series[key] = Series(windows={name: Tally.empty(self._wheel) for name in windows})
        series = counts.series[key]
        for tally in series.windows.values():
            tally.add(spin)
        for name in (str(SHORT), str(LONG)):
            if series.windows[name].spins == int(name):
                self._look(key, series, name)
                series.windows[name] = Tally.empty(self._wheel)
        if series.windows[ALL].spins % LONG == 0:
            self._look(key, series, ALL)

    def _look(self, key: str, series: Series, window: str) -> None:
        tally, name = series.windows[window], f"statistics:{key}"
        made = tally.tests(self._wheel)
        ppm = {test: min(MILLION, int(chance * LOOKS * len(made) * MILLION)) for test, chance in made.items()}
        worst = min(ppm, key=lambda test: ppm[test], default="")
        least = ppm.get(worst, MILLION)
        level: Level = "alarm" if least < ALARM_PPM else "warning" if least < WARNING_PPM else "ok"
        look = series.looks[window] = wire.Look(spins=tally.spins, p_ppm=ppm, level=level)
        said = {"wheel": self._serial or "-", "sense": key, "spins": tally.spins, "why": worst}
        body = {"wheel": self._serial, "series": key, "window": window, **msgspec.to_builtins(look)}
        told = Told(kind="anomaly", code="hasard_a_surveiller", text=text("hasard_a_surveiller", **said), data=body)
        self._note("statistics", body, *([told] if level == "warning" else []))
        if level == "alarm":
            self._alarm(name, "hasard_en_doute", text("hasard_en_doute", **said))
        elif series.level() != "alarm":
            self._clear(name)

    def _told(self, series: Series) -> wire.Series:
        tally = series.windows[ALL]
        now = {test: int(chance * MILLION) for test, chance in tally.tests(self._wheel).items()}
        return wire.Series(spins=tally.spins, now_ppm=now, looks=dict(series.looks))


def _worst(levels: Iterable[Level]) -> Level:
    return max(levels, key=LEVELS.index, default="ok")
