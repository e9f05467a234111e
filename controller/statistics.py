"""Is the wheel still fair? Counts of its results by sense of rotor and ball, looked at when a window is full.

    valid result, no hand in it ──► waits (it may be revised) ──► the next coup ends: it counts in each window

Windows do not overlap: a look at every 1,000 and every 5,000 spins of a series, and with these one at all of them.
Every look asks several tests, so that a chance is multiplied by how many are asked in 5,000 spins: a fair wheel is
suspected in one of a hundred such stretches of a series (warning) and accused in one of a thousand (alarm). A look
never touches a result: an alarm sends a technician to the wheel.

What is counted is part of the journal's state, as text: it is committed with the results that it counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

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


@dataclass(slots=True)
class Series:
    """What was counted of one sense of rotor and ball."""

    windows: dict[str, Tally]
    looks: dict[str, dict[str, int]] = field(default_factory=dict)
    """The last look at each window: `spins`, and the chance of each test in millionths, corrected."""

    def level(self) -> Level:
        """The worst of the last looks."""
        return max((level(look) for look in self.looks.values()), key=("ok", "warning", "alarm").index, default="ok")


def level(look: dict[str, int]) -> Level:
    """What a look says."""
    least = min(chances(look).values(), default=MILLION)
    return "alarm" if least < ALARM_PPM else "warning" if least < WARNING_PPM else "ok"


def chances(look: dict[str, int]) -> dict[str, int]:
    """The tests of a look."""
    return {test: ppm for test, ppm in look.items() if test != "spins"}


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
        """`kept` is a `snapshot` out of the journal, empty before the first."""
        self._game, self._wheel, self._serial = game, Wheel.of(game, options), serial
        self._alarm, self._clear, self._note, self._clock = alarm, clear, note, clock
        self._series: dict[str, Series] = {}
        self._waiting: tuple[list[int], str, Spin] | None = None
        self._arc: tuple[int, int] | None = None
        self._since: str | None = None
        self._text = kept
        body = json.loads(kept) if kept else {"since": None, "waiting": None, "series": {}, **self._names()}
        self._other = any(body[name] != value for name, value in self._names().items())
        self._restore(body)

    def begin(self) -> None:
        """At the start: another wheel than the journal knows is journalled with the last counts of that one."""
        if self._other:
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
        coup = [ended.seance, ended.partie, ended.coup]
        if maintenance:
            return
        if self._waiting is not None and self._waiting[0] != coup:
            self._count(*self._waiting[1:])
        self._waiting, self._text = None, ""
        if ended.status is Status.VALID and ended.manual is None and ended.outcome is not None:
            key = "/".join(sense for sense in (ended.direction, ball) if sense is not None) or "any"
            self._waiting = (coup, key, self._wheel.spin(self._game, ended.outcome, self._arc))
        self._arc = None

    def reset(self, why: str) -> None:
        """Begin anew: another wheel, or one that was levelled or mended."""
        spins = {key: series.windows[ALL].spins for key, series in self._series.items()}
        self._note("statistics", {"reset": why, "wheel": self._serial, "spins": spins})
        for key in self._series:
            self._clear(f"statistics:{key}")
        self._series, self._waiting, self._since, self._text = {}, None, self._clock.utc(), ""

    def snapshot(self) -> str:
        """For the constructor; as text, for the journal's state is written more often than a coup ends."""
        if not self._text:
            waiting = None if self._waiting is None else [*self._waiting[:2], asdict(self._waiting[2])]
            series = {key: asdict(entry) for key, entry in self._series.items()}
            body = {**self._names(), "since": self._since, "waiting": waiting, "series": series}
            self._text = json.dumps(body, separators=(",", ":"))
        return self._text

    def report(self) -> wire.Statistics:
        """For `health`."""
        return wire.Statistics(
            wheel=self._serial,
            since=self._since,
            level=max((e.level() for e in self._series.values()), key=("ok", "warning", "alarm").index, default="ok"),
            series={key: self._told(entry) for key, entry in self._series.items()},
        )

    def _names(self) -> dict[str, Any]:
        return {"wheel": self._serial, "values": list(self._wheel.values)}

    def _restore(self, body: dict[str, Any]) -> None:
        self._since = body["since"]
        self._series = {key: _series(entry) for key, entry in body["series"].items()}
        if body["waiting"] is not None:
            coup, key, spin = body["waiting"]
            self._waiting = (coup, key, Spin(**spin))

    def _count(self, key: str, spin: Spin) -> None:
        if self._since is None:
            self._since = self._clock.utc()
        windows = (str(SHORT), str(LONG), ALL)
        series = self._series.setdefault(key, Series({name: Tally.empty(self._wheel) for name in windows}))
        for tally in series.windows.values():
            tally.add(spin)
        for name in (str(SHORT), str(LONG)):
            if series.windows[name].spins == int(name):
                self._look(key, series, name)
                series.windows[name] = Tally.empty(self._wheel)
        if series.windows[ALL].spins % LONG == 0:
            self._look(key, series, ALL)

    def _look(self, key: str, series: Series, window: str) -> None:
        tally = series.windows[window]
        made = tally.tests(self._wheel)
        ppm = {test: min(MILLION, int(chance * LOOKS * len(made) * MILLION)) for test, chance in made.items()}
        look = series.looks[window] = {"spins": tally.spins, **ppm}
        worst = min(ppm, key=lambda test: ppm[test], default="")
        said = {"wheel": self._serial or "-", "sense": key, "spins": tally.spins, "why": worst}
        told = []
        if level(look) == "warning":
            data = {"series": key, "window": window, **look}
            sentence = text("hasard_a_surveiller", **said)
            told = [Told(kind="anomaly", code="hasard_a_surveiller", text=sentence, data=data)]
        self._note("statistics", {"wheel": self._serial, "series": key, "window": window, **look}, *told)
        if level(look) == "alarm":
            self._alarm(f"statistics:{key}", "hasard_en_doute", text("hasard_en_doute", **said))
        elif series.level() != "alarm":
            self._clear(f"statistics:{key}")

    def _told(self, series: Series) -> wire.Series:
        tally = series.windows[ALL]
        return wire.Series(
            spins=tally.spins,
            now_ppm={test: int(chance * MILLION) for test, chance in tally.tests(self._wheel).items()},
            looks={
                window: wire.Look(spins=look["spins"], p_ppm=chances(look), level=level(look))
                for window, look in series.looks.items()
            },
        )


def _series(body: dict[str, Any]) -> Series:
    return Series({name: Tally(**tally) for name, tally in body["windows"].items()}, body["looks"])
