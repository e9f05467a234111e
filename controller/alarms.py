"""The alarm book: what needs a person, latched until the cause is gone and somebody has acknowledged it (R18).

Alarms come from the law (`AlarmRaised`, `AlarmCleared`) and from the controller itself. The book is data: whoever
changes it journals the change (`snapshot`) and tells it (`event` of kind `alarm`). After a restart an alarm is as it
was until somebody finds its cause gone (R5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from controller.wire import Alarm


class AlarmBook:
    """Alarms by name; each change answers the alarm as it now stands, or None when nothing changed."""

    def __init__(self, restored: Iterable[Mapping[str, Any]] = ()) -> None:
        """`restored` is a `snapshot` out of the journal; raises msgspec.ValidationError when it is none."""
        alarms = [msgspec.convert(entry, Alarm) for entry in restored]
        self._alarms = {alarm.name: alarm for alarm in alarms}

    def activate(self, name: str, code: str, text: str, at: str) -> Alarm | None:
        """The cause is there (again) since `at` (RFC 3339); one that has been away needs a new acknowledgement."""
        known = self._alarms.get(name)
        if known is not None and known.active:
            self._alarms[name] = msgspec.structs.replace(known, code=code, text=text)
            return self._alarms[name] if (code, text) != (known.code, known.text) else None
        return self._put(Alarm(name=name, code=code, text=text, active=True, acked=False, since=at))

    def clear(self, name: str) -> Alarm | None:
        """The cause is gone; the alarm leaves the book when it was acknowledged before."""
        known = self._alarms.get(name)
        if known is None or not known.active:
            return None
        return self._put(msgspec.structs.replace(known, active=False))

    def ack(self, name: str, by: str, at: str) -> Alarm | None:
        """A named person has seen it; raises LookupError naming the alarms that there are."""
        known = self._alarms.get(name)
        if known is None:
            raise LookupError(f"no alarm {name!r}; there are: {', '.join(sorted(self._alarms)) or 'none'}")
        if known.acked:
            return None
        return self._put(msgspec.structs.replace(known, acked=True, acked_by=by, acked_at=at))

    def listed(self) -> list[Alarm]:
        """For `state.alarms`, in order of appearance."""
        return list(self._alarms.values())

    def snapshot(self) -> list[dict[str, Any]]:
        """Plain data from which the constructor restores the book."""
        return [dict(msgspec.to_builtins(alarm)) for alarm in self._alarms.values()]

    def _put(self, alarm: Alarm) -> Alarm:
        if alarm.active or not alarm.acked:
            self._alarms[alarm.name] = alarm
        else:
            del self._alarms[alarm.name]
        return alarm
