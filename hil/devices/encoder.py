"""An incremental encoder with index on a shaft: from the angle over time to the edges that a kernel would stamp.

Forward (rising angle) the four boundaries of one electrical cycle are A up, B up, A down, B down; backwards the same
boundaries come in reverse with the opposite polarity. Real discs place them wrong by up to half a count, the disc sits
a little off centre, and the kernel stamps late. Faults L0 to L4 are those of physics README section 4.3.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hil.devices.lines import Pulse
from hil.physics.motion import TURN, Motion

SECOND = 1_000_000_000
_FORWARD = (("a", 1), ("b", 1), ("a", 0), ("b", 0))
"""What the boundaries of a cycle show; backwards each shows its opposite."""
_BACKWARD = tuple((line, 1 - level) for line, level in _FORWARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong between the disc and the reader."""

    edge_errors: float = 0.4
    """Largest misplacement of a boundary in counts (0.5 is what data sheets allow)."""
    eccentric_rad: float = 0.001
    """Once-per-turn error of the angle."""
    latency_us: float = 20.0
    """Mean of the exponential part of the stamp's delay; 5 us come on top."""
    lost: float = 0.0
    """Share of edges that no interrupt was taken for (no trace in the numbering)."""
    glitches_per_s: float = 0.0
    half: float = 0.0
    """Share of glitches of which only one edge is seen."""
    bursts: int = 0
    """Queue overflows per motion, of 20 to 400 edges each; they show as holes in the numbering."""


LEVELS: Mapping[str, Faults] = {
    "clean": Faults(edge_errors=0.0, eccentric_rad=0.0, latency_us=0.0),
    "L0": Faults(),
    "L1": Faults(lost=1e-5, glitches_per_s=0.1),
    "L2": Faults(lost=1e-4, glitches_per_s=1.0, half=0.05),
    "L3": Faults(lost=1e-3, glitches_per_s=10.0, half=0.10),
    "L4": Faults(lost=1e-3, glitches_per_s=10.0, half=0.10, bursts=2),
}


class Encoder:
    """The encoder of role `role`; `play` may be called with one piece of motion after the other."""

    def __init__(
        self,
        role: str,
        *,
        counts_per_turn: int,
        faults: Faults = LEVELS["L0"],
        seed: int | str = 0,
        index_width: int = 2,
    ) -> None:
        own = Random(f"encoder {role} {seed}")
        self.role, self.counts, self.faults = role, counts_per_turn, faults
        self.off = [own.uniform(-faults.edge_errors, faults.edge_errors) for _ in range(4)]
        self.phase = own.uniform(0, TURN)
        self.index_width = index_width
        self.moved_ns = 0
        """When the last true level change of A or B that was not lost happened."""
        self._rng = Random(f"encoder noise {role} {seed}")
        self._stamp_ns = 0

    def levels_at(self, angle: float) -> dict[str, int]:
        """Levels of the three lines with the shaft at rest at this angle."""
        at = self._counts_at(angle)
        turned = at % self.counts
        return {
            f"{self.role}.a": int((at - self.off[0]) % 4 < 2 + self.off[2] - self.off[0]),
            f"{self.role}.b": int((at - 1 - self.off[1]) % 4 < 2 + self.off[3] - self.off[1]),
            f"{self.role}.index": int(turned < self.index_width),
        }

    def play(self, motion: Motion, start_ns: int) -> list[Pulse]:
        """The edges of this motion whose time 0 is at `start_ns`, as the kernel stamps and numbers them."""
        edges = self._edges(motion)
        disturbed = self._disturbed(edges, motion)
        true = set(edges[-50:])
        last = next((edge[0] for edge in reversed(disturbed) if edge[:3] in true and edge[1] != "index"), None)
        if last is not None:
            self.moved_ns = start_ns + round(last * SECOND)
        stamped: list[Pulse] = []
        mean_ns, chance, log = self.faults.latency_us * 1000, self._rng.random, math.log
        names = {line: f"{self.role}.{line}" for line in ("a", "b", "index")}
        newest = self._stamp_ns
        for time, line, level, gap in disturbed:
            late_ns = 5000 - mean_ns * log(1 - chance()) if mean_ns else 0
            at_ns = start_ns + int(time * SECOND + late_ns)
            newest = max(newest, at_ns)
            stamped.append(Pulse(newest, names[line], level, gap))
        self._stamp_ns = newest
        return stamped

    def _counts_at(self, angle: float) -> float:
        return (angle + self.faults.eccentric_rad * math.sin(angle - self.phase)) / TURN * self.counts

    def _edges(self, motion: Motion) -> list[tuple[float, str, int]]:
        """(time, line, level) of every true level change."""
        counts, off, width = self.counts, self.off, self.index_width
        at = list(map(self._counts_at, motion.angles))
        edges: list[tuple[float, str, int]] = []
        marks: list[tuple[float, str, int]] = []
        last_s, last = motion.times[0], at[0]
        n = math.floor(last) - 1
        while n + off[n & 3] <= last:
            n += 1
        above, below = n + off[n & 3], n - 1 + off[(n - 1) & 3]
        lap = math.floor(last / counts) * counts
        for time, now in zip(motion.times, at, strict=True):
            while now >= above:
                edges.append((last_s + (above - last) / (now - last) * (time - last_s), *_FORWARD[n & 3]))
                n += 1
                below, above = above, n + off[n & 3]
            while now < below:
                n -= 1
                edges.append((last_s + (below - last) / (now - last) * (time - last_s), *_BACKWARD[n & 3]))
                above, below = below, n - 1 + off[(n - 1) & 3]
            if not (lap + width <= min(now, last) and max(now, last) < lap + counts):
                low, high = min(now, last), max(now, last)
                for k in range(math.floor(low / counts) - 1, math.floor(high / counts) + 1):
                    for where, level in ((k * counts, 1), (k * counts + width, 0)):
                        if low < where <= high:
                            share = (where - last) / (now - last)
                            marks.append((last_s + share * (time - last_s), "index", level ^ (now < last)))
                lap = math.floor(now / counts) * counts
            last_s, last = time, now
        for mark in marks:
            insort(edges, mark)
        return edges

    def _disturbed(self, edges: Sequence[tuple[float, str, int]], motion: Motion) -> list[tuple[float, str, int, int]]:
        """The same edges with glitches added, edges lost and queues overflown; the last number is the hole before."""
        f, rng = self.faults, self._rng
        wild = list(edges)
        time = rng.expovariate(f.glitches_per_s) if f.glitches_per_s else math.inf
        while time < motion.ends:
            line = rng.choice("ab")
            now = self.levels_at(motion.at(time))[f"{self.role}.{line}"]
            insort(wild, (time, line, 1 - now))
            if rng.random() >= f.half:
                insort(wild, (time + rng.uniform(1e-6, 30e-6), line, now))
            time += rng.expovariate(f.glitches_per_s)
        kept = [(*edge, 0) for edge in wild]
        place = len(kept)
        while f.lost and (place := place - 1 - math.floor(math.log(1 - rng.random()) / math.log1p(-f.lost))) >= 0:
            del kept[place]
        for _ in range(f.bursts if len(kept) > 1000 else 0):
            first, length = rng.randrange(200, len(kept) - 600), rng.randint(20, 400)
            holes: dict[str, int] = {}
            for _, line, _, gap in kept[first : first + length]:
                holes[line] = holes.get(line, 0) + 1 + gap
            del kept[first : first + length]
            for n in range(first, len(kept)):
                time, line, new, gap = kept[n]
                if line in holes:
                    kept[n] = (time, line, new, gap + holes.pop(line))
                if not holes:
                    break
        return kept


def cut_cable(
    pulses: Sequence[Pulse],
    levels: Mapping[str, int],
    out_ns: int,
    back_ns: int | None,
    rng: Random,
    *,
    parted: bool = False,
) -> list[Pulse]:
    """The same lines with the plug pulled from `out_ns` until `back_ns` (None: for good).

    `levels` are the levels before the first pulse, for the lines that hang on this cable. The pins part one after the
    other; an open input is pulled up, so lines that were low rise once and then nothing moves any more.
    `parted`: the plug was out before, so nothing is seen of its parting.
    """
    back = math.inf if back_ns is None else back_ns

    def levels_before(at_ns: float) -> dict[str, int]:
        now = dict(levels)
        now.update((pulse.line, pulse.level) for pulse in pulses if pulse.at_ns < at_ns and pulse.line in now)
        return now

    def moving(at_ns: int, held: Mapping[str, int], wanted: Mapping[str, int]) -> list[Pulse]:
        pins = [line for line in wanted if wanted[line] != held[line]]
        rng.shuffle(pins)
        return [Pulse(at_ns + 40_000 * n + rng.randrange(30_000), line, wanted[line]) for n, line in enumerate(pins)]

    pulled_up = dict.fromkeys(levels, 1)
    seen = [pulse for pulse in pulses if pulse.line not in levels or not out_ns <= pulse.at_ns < back]
    if not parted:
        seen += moving(out_ns, levels_before(out_ns), pulled_up)
    if back_ns is not None:
        seen += moving(back_ns, pulled_up, levels_before(back_ns))
    seen.sort(key=lambda pulse: pulse.at_ns)
    return seen
