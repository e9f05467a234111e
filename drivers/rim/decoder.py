"""The decoder of the family `rim`: pulses of beams to launches, the moment before the drop, drops and lost balls.

Never silent: a ball that was seen and makes no lap, or ends early, has its drop told at once and is lost as a throw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

from drivers.base import Answer, Edge, Snapshot
from drivers.pulses import Pulses
from drivers.rim.ball import LONGEST_NS, SECOND, TURN, Track
from drivers.rim.law import DRIFT, RimLaw
from drivers.rim.options import Options
from rules.facts import (
    BallDropped,
    BallLaunched,
    BallLost,
    DeviceBack,
    DeviceLost,
    Direction,
    Doubtful,
    DropDue,
    Fact,
    Overrun,
)

MS: Final = 1_000_000
_MERGE_NS: Final = 2 * MS
_SHORTEST_NS: Final = 300_000
_NO_LAP_NS: Final = 2500 * MS
"""A ball that was seen must have been found by then."""
_ENOUGH_TURNS: Final = 3
"""A throw of fewer turns on the rim is no throw (physics README, bar R3)."""
_FIRST_TURNS: Final = 3.5
"""How long before the drop it is told while too little is learned."""
_NEARLY: Final = 1 / 0.9
"""A lap at less than so much of the speed of the drop: it is due now, whatever was expected."""
_REST_NS: Final = 30 * SECOND
"""So long after a drop a pulse or two are no new ball: the one that dropped may still jump about."""
_BLOCKED_NS: Final = 10 * SECOND
_OVER_NS: Final = 1500 * MS
"""After the drop was told the throw is over when nothing more passes for so long."""

_STATE: Final = (
    "_told", "_due_told", "_gone_told", "_lost_told", "_dropped_ns", "_seen_ns", "_senseless", "_why", "_port_why",
    "_fact_ns", "_now_ns", "_fire_ns", "_gone_ns", "_drops",
)  # fmt: skip


class Rim:
    """`EdgeDecoder`; the lines are `<role>.0`, `<role>.1`, ...; 1 = something is in the beam."""

    def __init__(self, role: str, options: Options) -> None:
        self._role, self._options = role, options
        names = tuple(f"{role}.{n}" for n in range(len(options.beams_deg)))
        self._pulses = Pulses(names, merge_ns=_MERGE_NS, shortest_ns=_SHORTEST_NS)
        self.law = RimLaw(options)
        self._track = Track(options, self.law)
        self.counters = {"throws": 0, "drops": 0, "weak": 0, "rejected": 0, "early_drops": 0, "losses": 0}
        self._blocked: list[int] = []
        """Beams in which something stands."""
        self._fire_ns = self._gone_ns = 0
        """While there is a ball: when its drop is due, and when it is gone if nothing passes until then."""
        self._drops = False
        """It would have dropped then; else it was taken from the rim."""
        self._told = 0
        """The sense that was told of this ball; 0: none yet."""
        self._due_told = self._gone_told = self._lost_told = self._senseless = False
        self._dropped_ns: int | None = None
        """When the last drop was told."""
        self._seen_ns: int | None = None
        """First plausible pulse of a ball that is not found yet."""
        self._why = self._port_why = ""
        self._fact_ns: int | None = None
        self._now_ns = 0

    # --- EdgeDecoder ---

    def feed(self, edges: Sequence[Edge]) -> list[Fact]:
        """Edges in order of their time; never raises."""
        facts: list[Fact] = []
        for edge in edges:
            self._elapse(edge.at_ns, facts)
            self._pulses.edge(edge)
            if self._blocked:
                self._unblock(edge.at_ns, facts)
        return self._remember(facts)

    def tick(self, now_ns: int) -> list[Fact]:
        """Time has passed."""
        facts: list[Fact] = []
        self._elapse(now_ns, facts)
        return self._remember(facts)

    def due_ns(self) -> int | None:
        """When something is due next."""
        return min((at_ns for at_ns, _ in self._dues()), default=None)

    def opened(self, at_ns: int) -> list[Fact]:
        """The chip is open: the beams are watched from now on."""
        self._forget()
        told = self._why or self._port_why
        self._port_why = ""
        if self._bright >= 2:
            self._why = ""
        if self._why or not told:
            return []
        return self._remember([DeviceBack(at_ns=at_ns, source=self._role, device=self._role)])

    def lost(self, at_ns: int, why: str) -> list[Fact]:
        """The chip is gone."""
        facts = self.tick(at_ns)
        told = self._why or self._port_why
        self._port_why = why
        self._forget()
        return facts if told else facts + self._remember([self._lose(at_ns, why)])

    def snapshot(self) -> Snapshot:
        """State from which `restore` continues; `learned` alone is what outlives a restart of the daemon."""
        return {
            "decoder": {name: getattr(self, name) for name in _STATE},
            "counters": dict(self.counters),
            "pulses": self._pulses.snapshot(),
            "track": self._track.snapshot(),
            "blocked": list(self._blocked),
            "learned": self.law.snapshot(),
        }

    def restore(self, state: Snapshot) -> None:
        """Continue from a snapshot; one that holds only `learned` leaves everything else as it is."""
        if "learned" in state:
            self.law.restore(state["learned"])
        if "decoder" not in state:
            return
        for name in _STATE:
            setattr(self, name, state["decoder"][name])
        self.counters.update(state["counters"])
        self._pulses.restore(state["pulses"])
        self._track.restore(state["track"])
        self._blocked = list(state["blocked"])

    def health(self) -> dict[str, int | str | None]:
        """Counters; `fault` says which beam to look at, or that the ball or the track has changed."""
        fault = self._fault()
        return {
            **self._pulses.counters,
            **self.counters,
            "lost": self._why or self._port_why or None,
            "advice": fault,
            "fault": fault,
            "learned_throws": self.law.spins,
            "last_fact_ns": self._fact_ns,
        }

    def sample(self) -> dict[str, Any]:
        """Speed, turns, and what was learned, for `diag` and `calibrate`."""
        ball, law = self._track.ball, self.law
        return {
            "mrad_s": round(1000 * ball.speed) if ball.found else 0,
            "turns_milli": round(1000 * ball.travelled / TURN),
            "sense": {1: "cw", -1: "ccw"}.get(ball.sense),
            "dark": list(self._track.dark),
            "up": [since is not None for since in self._pulses.up_since_ns()],
            "learned": {
                "spins": law.spins,
                "air_ppm": round(1e6 * law.a),
                "rolling_mrad_s2": round(1e3 * law.b),
                "leaves_mrad_s": round(1e3 * law.wc),
                "drift_permille": round(1000 * law.drift()),
            },
        }

    # --- the technician ---

    asks: frozenset[str] = frozenset()
    orders = frozenset({"forget"})

    @property
    def guide(self) -> str:
        """How the beams are put into service, in French."""
        return (
            f"Une bille lancée dans le sens horaire : diag {self._role} doit dire cw, sinon échanger les lignes ou "
            "corriger beams_deg. Puis dix lancers francs, « Rien ne va plus » annoncé par le croupier : la bille est "
            "connue après cinq, la mise en service close après dix. Après un changement de bille ou de galerie : "
            f"calibrate {self._role} forget."
        )

    def answer(self, name: str, args: Mapping[str, object]) -> Answer:
        """`forget` what was learned; raises ValueError for any other name."""
        del args
        if name != "forget":
            raise ValueError(f"there is no {name}; there is: forget")
        spins = self.law.spins
        self.law.restore(RimLaw(self._options).snapshot())
        return Answer(True, f"{spins} lancers oubliés : dix lancers francs.")

    # --- what is due ---

    def _dues(self) -> Iterator[tuple[int, Callable[[int, list[Fact]], None]]]:
        """Everything that is due some time, with what is done then; never before what was done last."""
        pulse = self._pulses.due_ns()
        if pulse is not None:
            yield pulse, self._passages
        lost = self._pulses.overrun_ns()
        if lost is not None:
            yield lost, self._overrun
        for n, since in enumerate(self._pulses.up_since_ns()):
            if since is not None and n not in self._track.dark:
                yield since + _BLOCKED_NS, self._block
        if self._track.ball.found:
            if not self._due_told:
                yield max(self._fire_ns, self._now_ns), self._due
            yield (self._gone_ns + _OVER_NS, self._over) if self._gone_told else (self._gone_ns, self._gone)
        elif self._seen_ns is not None:
            yield self._seen_ns + _NO_LAP_NS, self._no_lap

    def _elapse(self, until_ns: int, facts: list[Fact]) -> None:
        """Do what is due up to this instant, the earliest first."""
        while True:
            due = min(self._dues(), key=itemgetter(0), default=None)
            if due is None or due[0] > until_ns:
                break
            self._now_ns = max(self._now_ns, due[0])
            due[1](due[0], facts)
        self._now_ns = max(self._now_ns, until_ns)

    def _passages(self, at_ns: int, facts: list[Fact]) -> None:
        for pulse in self._pulses.take(at_ns):
            if not self._track.plausible(pulse):
                self.counters["rejected"] += 1
                continue
            if not self._track.passage(pulse):
                self.counters["rejected"] += self._track.ball.found
                if self._seen_ns is None and not self._track.ball.found:
                    self._seen_ns = at_ns
                continue
            self._passed(at_ns, facts)

    def _passed(self, at_ns: int, facts: list[Fact]) -> None:
        ball = self._track.ball
        if self._gone_told:  # it runs on: what was told was too early
            self._gone_told = False
            self.counters["early_drops"] += 1
            if self._lost_told:
                self._lost_told = self._due_told = False
                self._told = 0
        self._seen_ns = None
        if ball.last_beam in self._track.dark:
            self._track.dark.remove(ball.last_beam)
            self._brightened(at_ns, facts)
        sense = ball.sense
        if sense and sense != self._told:
            self._launched(sense, facts)
        dark = self._track.newly_dark()
        if dark:
            self._track.dark += dark
            self._darkened(at_ns, "dead_beam", facts)
        elif not sense and not self._senseless and self._bright > 1 and ball.travelled > 4 * TURN:
            self._senseless = True
            facts.append(self._doubt(at_ns, "sense_unknown"))
        self._gone_ns, self._drops = self._track.silence()
        self._fire_ns = self._when_due()

    def _launched(self, sense: int, facts: list[Fact]) -> None:
        self.counters["throws"] += not self._told
        self._told = sense
        at_ns = self._track.ball.first_ns
        facts.append(BallLaunched(at_ns=at_ns, source=self._role, direction=_direction(sense)))

    def _when_due(self) -> int:
        """When the drop is to be told as due."""
        ball, law, lead_s = self._track.ball, self.law, self._options.lead_ms / 1000
        _, speed, missed, _ = ball.laps[-1]
        if not law.believed:
            if self._options.lap_ms is not None and speed >= law.wc * _NEARLY:
                slow = missed == 1 and TURN / speed * 1000 >= self._options.lap_ms
                return ball.last_ns if slow else self._gone_ns
            lead_s = law.left(law.further(law.wc, -_FIRST_TURNS * TURN))
        if speed < law.wc * _NEARLY:
            return ball.last_ns
        return round(self._track.drop_ns() - lead_s * SECOND)

    def _due(self, at_ns: int, facts: list[Fact]) -> None:
        self._due_told = True
        votes = sum(self._track.ball.votes)
        if votes and not self._told:  # of a weak throw one vote must do
            self._launched(1 if votes > 0 else -1, facts)
        drop_at_ns = max(at_ns, round(self._track.drop_ns()))
        facts.append(DropDue(at_ns=at_ns, source=self._role, drop_at_ns=drop_at_ns))

    def _gone(self, at_ns: int, facts: list[Fact]) -> None:
        """No passage where one was due: it dropped, or it is not on the rim any more and should be."""
        ball = self._track.ball
        hidden = [n for n, since in enumerate(self._pulses.up_since_ns()) if since and at_ns - since > LONGEST_NS]
        if len({*hidden, *self._track.dark}) == len(self._options.beams_deg):  # no hand hides all: the cable
            self._hide(hidden, at_ns, facts)
            self._next_ball()
            return
        gone_ns, drops = self._track.silence(hidden)
        if gone_ns > self._gone_ns:
            self._gone_ns, self._drops = gone_ns, drops
            return
        if not self._drops:
            facts.append(BallLost(at_ns=at_ns, source=self._role, why="gone_at_speed"))
            self._next_ball()
            return
        if not self._due_told:
            self._due(at_ns, facts)
        self._gone_told = True
        if ball.travelled < _ENOUGH_TURNS * TURN:
            self.counters["weak"] += 1
            self._lost_told = True
            facts.append(BallLost(at_ns=at_ns, source=self._role, why="weak_throw"))
        else:
            self.counters["drops"] += 1
            self._dropped_ns = at_ns
            begin, length = self._track.left_in()
            dropped = BallDropped(at_ns=ball.last_ns, until_ns=at_ns, source=self._role)
            facts.append(replace(dropped, arc_from_deg=begin, arc_deg=length))

    def _over(self, at_ns: int, facts: list[Fact]) -> None:
        """The throw is over: learn from it."""
        track, ball = self._track, self._track.ball
        laps = track.slowings()
        if len(laps) >= 3 and not ball.found_anew and ball.travelled >= 4 * TURN:
            before = self.law.drift()
            self.law.learn(laps, track.left_at())
            if self.law.drift() > DRIFT >= before:
                facts.append(self._doubt(at_ns, "drift"))
        self._next_ball()

    def _no_lap(self, at_ns: int, facts: list[Fact]) -> None:
        """A ball was seen and did not come round: no throw, and rien ne va plus is due for whoever betted on it."""
        seen_ns, sense, arrived_ns = self._seen_ns, self._track.pair_sense(), self._track.arrived_ns()
        assert seen_ns is not None
        if arrived_ns > seen_ns:  # a ball may have been thrown right behind: it has its own time to be found
            self._seen_ns = arrived_ns
            return
        resting = self._dropped_ns is not None and seen_ns - self._dropped_ns < _REST_NS
        if not resting and self._track.calm() and (sense or self._track.slow()):
            self.counters["weak"] += 1
            if sense:
                facts.append(BallLaunched(at_ns=seen_ns, source=self._role, direction=_direction(sense)))
            facts.append(DropDue(at_ns=at_ns, source=self._role, drop_at_ns=at_ns))
            facts.append(BallLost(at_ns=at_ns, source=self._role, why="weak_throw"))
        self._next_ball()

    def _next_ball(self) -> None:
        self._track.clear()
        self._told, self._seen_ns = 0, None
        self._due_told = self._gone_told = self._lost_told = self._senseless = False

    # --- beams ---

    def _block(self, at_ns: int, facts: list[Fact]) -> None:
        """Something stands in a beam."""
        up = self._pulses.up_since_ns()
        self._hide([n for n, since in enumerate(up) if since and since + _BLOCKED_NS <= at_ns], at_ns, facts)

    def _hide(self, beams: Sequence[int], at_ns: int, facts: list[Fact]) -> None:
        for n in beams:
            if n not in self._track.dark:
                self._track.dark.append(n)
                self._blocked.append(n)
                self._darkened(at_ns, "blocked_beam", facts)

    def _unblock(self, at_ns: int, facts: list[Fact]) -> None:
        up = self._pulses.up_since_ns()
        for n in [n for n in self._blocked if up[n] is None]:
            self._blocked.remove(n)
            self._track.dark.remove(n)
            self._brightened(at_ns, facts)

    def _darkened(self, at_ns: int, why: str, facts: list[Fact]) -> None:
        """A beam sees nothing any more: a doubt, or the end where one beam is left, for it tells no sense."""
        if self._bright >= 2:
            facts.append(self._doubt(at_ns, why))
        elif not self._why:
            told = self._port_why
            self._why = why
            facts += [] if told else [self._lose(at_ns, why)]

    def _brightened(self, at_ns: int, facts: list[Fact]) -> None:
        """A beam sees again."""
        if self._why and self._bright >= 2:
            self._why = ""
            facts.append(DeviceBack(at_ns=at_ns, source=self._role, device=self._role))

    @property
    def _bright(self) -> int:
        return len(self._options.beams_deg) - len(self._track.dark)

    def _fault(self) -> str | None:
        """What somebody must mend: beams, or a ball that runs otherwise than when the table was set up."""
        told = [f"Faisceau {n} masqué : le dégager." for n in self._blocked]
        told += [
            f"Faisceau {n} aveugle : le nettoyer ou le régler." for n in self._track.dark if n not in self._blocked
        ]
        drift = self.law.drift()
        if drift > DRIFT:
            told.append(
                f"La bille ralentit ou quitte la galerie autrement qu'à la mise en service ({100 * drift:.0f} %) : "
                f"vérifier bille, galerie et niveau, puis calibrate {self._role} forget et dix lancers."
            )
        return " ".join(told) or None

    # --- small ---

    def _overrun(self, at_ns: int, facts: list[Fact]) -> None:
        lost = self._pulses.overrun(at_ns)
        facts.append(Overrun(at_ns=at_ns, source=self._role, device=self._role, lost=lost))

    def _forget(self) -> None:
        """The beams were not watched."""
        self._pulses.forget()
        self._track.dark = [n for n in self._track.dark if n not in self._blocked]
        self._blocked.clear()
        self._next_ball()

    def _lose(self, at_ns: int, why: str) -> Fact:
        self.counters["losses"] += 1
        return DeviceLost(at_ns=at_ns, source=self._role, device=self._role, why=why)

    def _doubt(self, at_ns: int, why: str) -> Fact:
        return Doubtful(at_ns=at_ns, source=self._role, device=self._role, why=why)

    def _remember(self, facts: list[Fact]) -> list[Fact]:
        if facts:
            self._fact_ns = facts[-1].at_ns
        return facts


def _direction(sense: int) -> Direction:
    return Direction.CW if sense > 0 else Direction.CCW
