"""The counts of a wheel: what counts, when it is looked at, what people are told, and that it survives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from controller import wire
from controller.clock import Clock
from controller.config_file import shipped_tables
from controller.results import Told
from controller.statistics import ALARM_PPM, LOOKS, WARNING_PPM, Statistics
from rules.decisions import CoupEnded, Status
from rules.facts import BallDropped, BallLaunched, Direction
from tests.controller.parts import config

TABLE = config("roulette-francaise")
PEOPLE: Mapping[str, object] = {"by": ["M. Chef"], "why": "vu"}


class Wheel:
    """A table that ends coups, and what its statistics say of them."""

    def __init__(self, kept: str = "", serial: str = "RF-2041", table: Any = TABLE) -> None:
        self.alarms: dict[str, str] = {}
        self.notes: list[tuple[str, Mapping[str, Any], tuple[Told, ...]]] = []
        self.table = table
        self.kept = Statistics(
            table.game, table.house.options, serial, kept=kept, alarm=self.alarm, clear=self.clear, note=self.note,
            clock=Clock(),
        )  # fmt: skip
        self.kept.begin()
        self.coup = 0

    def alarm(self, name: str, code: str, sentence: str) -> None:
        assert code == "hasard_en_doute"
        self.alarms[name] = sentence

    def clear(self, name: str) -> None:
        self.alarms.pop(name, None)

    def note(self, kind: str, body: Mapping[str, Any], *told: Told) -> None:
        self.notes.append((kind, body, told))

    def end(
        self,
        cell: int | None,
        *,
        again: bool = False,
        maintenance: bool = False,
        rotor: Direction | None = Direction.CW,
        **how: Any,
    ) -> None:
        """The next coup, or the same one `again`, ends with this cell."""
        self.coup += not again
        outcome = None if cell is None else self.table.game.cell(cell, self.table.house.options)
        given = {"kind": "first", "status": Status.VALID, **how}
        ended = CoupEnded(
            coup=self.coup, partie=1, seance=1, reasons=(), outcome=outcome, direction=rotor, times={}, sources={},
            **given,
        )  # fmt: skip
        self.kept.ended(ended, rotor.opposite if rotor else None, maintenance=maintenance)

    def play(self, cells: Sequence[int]) -> None:
        for cell in cells:
            self.end(cell)

    def spins(self) -> dict[str, int]:
        return {key: series.spins for key, series in self.kept.report().series.items()}

    def levels(self, series: str = "cw/ccw") -> dict[str, str]:
        return {window: look.level for window, look in self.kept.report().series[series].looks.items()}


def fair(seed: int, spins: int) -> list[int]:
    rng = Random(seed)
    return [rng.randrange(37) for _ in range(spins)]


def tilted(seed: int, spins: int, more: float = 0.6) -> list[int]:
    """Cells 10 to 18 are favoured."""
    return Random(seed).choices(range(37), [1 + more * (10 <= cell <= 18) for cell in range(37)], k=spins)


def test_a_result_counts_when_the_next_coup_ends_by_sense_of_rotor_and_ball() -> None:
    wheel = Wheel()
    assert wheel.kept.report() == wire.Statistics(wheel="RF-2041", since=None, level="ok", series={})
    wheel.end(3)
    assert wheel.spins() == {}
    wheel.end(4, rotor=Direction.CCW)
    assert wheel.spins() == {"cw/ccw": 1}
    wheel.end(5, rotor=None)
    wheel.end(6)
    assert wheel.spins() == {"cw/ccw": 1, "ccw/cw": 1, "any": 1}
    assert wheel.kept.report().since is not None


@pytest.mark.parametrize(
    "how",
    [
        {"status": Status.HELD}, {"status": Status.VOID}, {"manual": PEOPLE}, {"maintenance": True},
        {"status": Status.HELD, "cell": None}, {"kind": "resolution", "manual": PEOPLE},
    ],
)  # fmt: skip
def test_only_valid_results_without_a_hand_in_them_count(how: dict[str, Any]) -> None:
    wheel = Wheel()
    wheel.end(**{"cell": 3, **how})
    wheel.end(4)
    wheel.end(5)
    assert wheel.spins() == {"cw/ccw": 1}


def test_a_result_that_is_revised_is_taken_back() -> None:
    wheel = Wheel()
    wheel.play([1, 2])
    wheel.end(None, again=True, kind="revision", status=Status.HELD)
    wheel.end(5)
    wheel.end(6)
    assert wheel.spins() == {"cw/ccw": 2}  # the first and the third
    wheel.end(None, again=True, kind="revision", status=Status.HELD)
    wheel.end(7, again=True, kind="resolution", manual=PEOPLE)  # a person's word is no reading
    wheel.end(8)
    assert wheel.spins() == {"cw/ccw": 2}


def test_a_coup_in_maintenance_leaves_what_waits_alone() -> None:
    wheel = Wheel()
    wheel.end(1)
    wheel.end(2, maintenance=True)
    assert wheel.spins() == {}
    wheel.end(None, again=True, kind="revision", status=Status.HELD)
    assert wheel.spins() == {"cw/ccw": 1}


def test_windows_are_looked_at_when_they_are_full_and_begin_anew() -> None:
    wheel = Wheel()
    wheel.play(fair(7, 1000))
    assert wheel.notes == []
    wheel.end(0)
    ((kind, body, told),) = wheel.notes
    assert (kind, body["series"], body["window"], body["spins"], told) == ("statistics", "cw/ccw", "1000", 1000, ())
    assert body["p_ppm"].keys() == {"pockets", "sector", "distance", "runs"}
    wheel.play(fair(8, 4000))
    assert [(body["window"], body["spins"]) for _, body, _ in wheel.notes] == [
        ("1000", 1000), ("1000", 1000), ("1000", 1000), ("1000", 1000), ("1000", 1000), ("5000", 5000), ("all", 5000),
    ]  # fmt: skip
    assert len(wheel.notes) == LOOKS
    assert wheel.kept.report().level == "ok"


def test_figures_to_read_need_five_of_each_cell() -> None:
    wheel = Wheel()
    wheel.play(fair(3, 185))
    assert "pockets" not in wheel.kept.report().series["cw/ccw"].now_ppm
    wheel.end(4)
    assert 0 < wheel.kept.report().series["cw/ccw"].now_ppm["pockets"] <= 1_000_000


def test_twenty_thousand_spins_of_a_fair_wheel_accuse_nobody() -> None:
    """Two stretches of 5,000 spins in each of two senses, and that for five wheels: 140 looks of four tests each.

    At 1 % a stretch 0.2 warnings are expected at most, at 0.1 % 0.02 alarms.
    """
    warnings = 0
    for seed in range(5):
        wheel = Wheel()
        for n, cell in enumerate(fair(seed, 20_000)):
            wheel.end(cell, rotor=Direction.CW if n % 2 else Direction.CCW)
        assert wheel.alarms == {}
        assert set(wheel.spins()) == {"cw/ccw", "ccw/cw"}
        warnings += sum(bool(told) for *_, told in wheel.notes)
    assert warnings <= 1


def test_a_favoured_sector_is_an_alarm_until_a_look_finds_the_wheel_mended() -> None:
    wheel = Wheel()
    wheel.play([*tilted(1, 1000), 0])
    assert wheel.levels() == {"1000": "alarm"}
    assert wheel.kept.report().level == "alarm"
    assert wheel.alarms["statistics:cw/ccw"].startswith(
        "Roue RF-2041 (cw/ccw), 1000 coups : un secteur sort trop ou trop peu, chance sous 0,1 %"
    )
    wheel.play(fair(2, 1000))
    assert wheel.levels() == {"1000": "ok"}
    assert wheel.alarms == {}


def test_a_window_that_is_well_does_not_end_the_alarm_of_another() -> None:
    wheel = Wheel()
    wheel.play([*tilted(1, 4000), *fair(3, 2000), 0])
    assert wheel.levels() == {"1000": "ok", "5000": "alarm", "all": "alarm"}
    assert set(wheel.alarms) == {"statistics:cw/ccw"}


def test_a_suspicion_is_told_once_as_an_anomaly() -> None:
    wheel = Wheel()
    wheel.play([*tilted(1, 1000, 0.3), 0])
    ((_, body, told),) = wheel.notes
    assert ALARM_PPM <= min(body["p_ppm"].values()) < WARNING_PPM
    assert [(event.kind, event.code) for event in told] == [("anomaly", "hasard_a_surveiller")]
    assert wheel.levels() == {"1000": "warning"}
    assert wheel.alarms == {}


def test_a_ball_that_leaves_the_rim_on_one_side_is_an_alarm_and_a_drop_counts_for_its_own_coup() -> None:
    wheel, rng = Wheel(), Random(5)
    for cell in fair(6, 1001):
        wheel.kept.left_rim(BallLaunched(at_ns=1, source="rim", direction=Direction.CCW))
        begin, length = rng.choices(((0, 120), (120, 240)), (0.5, 0.5))[0]
        if rng.random() < 0.9:  # the rim does not always know
            wheel.kept.left_rim(BallDropped(at_ns=2, source="rim", arc_from_deg=begin, arc_deg=length))
        wheel.end(cell)
    assert wheel.kept.report().series["cw/ccw"].looks["1000"].p_ppm["zone"] == 0
    assert "la bille quitte la galerie d'un côté" in wheel.alarms["statistics:cw/ccw"]
    arcs = json.loads(wheel.kept.snapshot())["series"]["cw/ccw"]["windows"]["all"]["arcs"]
    assert 850 < sum(arcs.values()) < 950
    assert Wheel(wheel.kept.snapshot()).kept.snapshot() == wheel.kept.snapshot()


def test_counts_survive_a_restart_at_any_spin() -> None:
    straight, broken = Wheel(), Wheel()
    for n, cell in enumerate(fair(9, 2300)):
        straight.end(cell)
        broken.end(cell)
        if n % 97 == 0:
            coup, notes = broken.coup, broken.notes
            broken = Wheel(broken.kept.snapshot())
            broken.coup, broken.notes = coup, [*notes, *broken.notes]
    again, first = (json.loads(wheel.kept.snapshot()) for wheel in (broken, straight))
    again["since"] = first["since"]
    assert again == first
    assert broken.notes == straight.notes
    assert len(straight.kept.snapshot()) < 8_000


def test_another_wheel_begins_anew_and_the_journal_says_what_was_before() -> None:
    wheel = Wheel()
    wheel.play([*tilted(1, 1000), 0])
    changed = Wheel(wheel.kept.snapshot(), serial="RF-2042")
    assert changed.spins() == {}
    assert changed.notes == [("statistics", {"reset": "wheel", "wheel": "RF-2042", "spins": {"cw/ccw": 1000}}, ())]
    other_cells = config("roulette-francaise", options={"cylindre": [*TABLE.house.options.cylindre[::-1]]})
    assert Wheel(wheel.kept.snapshot(), table=other_cells).spins() == {}
    assert Wheel(wheel.kept.snapshot()).spins() == {"cw/ccw": 1000}


def test_counts_of_another_version_are_begun_anew() -> None:
    wheel = Wheel('{"wheel":"RF-2041","spins":7}')
    assert wheel.spins() == {}
    assert [body["reset"] for _, body, _ in wheel.notes] == ["wheel"]


def test_a_technician_begins_anew() -> None:
    wheel = Wheel()
    wheel.play([*tilted(1, 1000), 0])
    wheel.kept.reset("M. Tech")
    assert wheel.alarms == {}
    assert wheel.spins() == {}
    assert wheel.notes[-1][1] == {"reset": "M. Tech", "wheel": "RF-2041", "spins": {"cw/ccw": 1000}}
    assert Wheel(wheel.kept.snapshot()).notes == []


def test_a_look_changes_its_figures_only_and_the_message_keeps_the_contract() -> None:
    wheel = Wheel()
    wheel.play([*tilted(1, 1000), 0])
    body = msgspec.json.decode(msgspec.json.encode(wheel.kept.report()))
    assert body["series"]["cw/ccw"]["looks"]["1000"]["p_ppm"]["sector"] < ALARM_PPM
    assert msgspec.convert(body, wire.Statistics) == wheel.kept.report()


@pytest.mark.parametrize("name", sorted(shipped_tables()))
def test_every_wheel_is_counted_by_its_own_cells(name: str) -> None:
    sizes = {"boule": 18, "roue-de-la-chance": 52, "roulette-americaine": 38, "vingt-trois": 27}
    wheel, size = Wheel(table=config(name)), sizes.get(name, 37)
    wheel.play([Random(n).randrange(size) for n in range(1001)])
    assert wheel.kept.report().series["cw/ccw"].looks["1000"].level == "ok"
    assert len(json.loads(wheel.kept.snapshot())["values"]) == size
