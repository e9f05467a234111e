"""What the wheel can be asked, what its self-test says, and what to do about it (PROTOCOL.md sections 4 and 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from drivers.base import Answer

STATES: Final[Mapping[int, str]] = {
    1: "before the game",
    2: "place your bets",
    3: "ball in the track",
    4: "no more bets",
    5: "winning number",
    6: "closed",
    7: "ball not found in the track",
}

SELFTEST: Final[Mapping[int, tuple[str, str]]] = {
    1: ("hardware", "Carte du cylindre en défaut : couper le courant 10 s, recommencer, sinon appeler le fabricant."),
    2: ("no_ball", "Aucune bille trouvée : mettre une bille dans le cylindre et recommencer."),
    3: ("no_position", "La position du rotor est inconnue : nettoyer la marque de référence et son capteur."),
    4: ("ball_direction", "Sens de la bille mal lu : nettoyer les trois capteurs et vérifier leur câblage."),
    5: ("motor", "Le moteur ne tourne pas : vérifier le fusible, la courroie et que le rotor est libre."),
    6: ("encoder", "Le codeur du rotor ne répond pas : vérifier son connecteur et le disque."),
    7: ("play_cw", "Lancer impossible dans le sens horaire : vérifier l'air comprimé et la bille."),
    8: ("play_ccw", "Lancer impossible dans le sens antihoraire : vérifier l'air comprimé et la bille."),
    11: ("sensor_1_stuck", "Capteur 1 toujours actif : nettoyer sa fenêtre, vérifier qu'aucun objet ne la couvre."),
    12: ("sensor_2_stuck", "Capteur 2 toujours actif : nettoyer sa fenêtre, vérifier qu'aucun objet ne la couvre."),
    13: ("sensor_3_stuck", "Capteur 3 toujours actif : nettoyer sa fenêtre, vérifier qu'aucun objet ne la couvre."),
    21: ("sensor_1_blind", "Capteur 1 aveugle : nettoyer sa fenêtre, puis étalonner les capteurs (calibrate)."),
    22: ("sensor_2_blind", "Capteur 2 aveugle : nettoyer sa fenêtre, puis étalonner les capteurs (calibrate)."),
    23: ("sensor_3_blind", "Capteur 3 aveugle : nettoyer sa fenêtre, puis étalonner les capteurs (calibrate)."),
    100: ("timeout", "L'autotest n'a pas fini à temps : vérifier la bille et le moteur, puis recommencer."),
}
"""Code of `*F` -> its name in `Doubtful.why` (`selftest_<name>`) and what the technician does; 0 is no fault."""

ADVICE: Final[Mapping[str, str]] = {
    "sensor_stuck": "Capteur bloqué ou défaut du moteur ou du codeur : fermer la table, lancer l'autotest (selftest).",
    "launch_failed": "Lancer manqué, le cylindre recommence : vérifier la bille et l'air comprimé.",
    "not_detected": "Bille non détectée : regarder où est la bille, puis redémarrer le coup (restart).",
    "with_the_rotor": "La bille tourne avec le cylindre : coup nul, relancer en sens contraire.",
    "bad_link": "Lignes abîmées : câble, masse, port (9600 8N1, console du système coupée) ou un second programme.",
    "silence": "Le cylindre ne dit plus rien : alimentation, câble croisé, mode 128 (état automatique).",
    "wrong_device": "Un autre appareil répond sur ce port : vérifier les câbles et `match` dans la configuration.",
    "licence": "La licence des numéros bonus a expiré : appeler le fabricant.",
}
"""What to do by the code that `health` shows."""

FLAGS: Final[Mapping[int, str]] = {4: "sensor_stuck", 8: "launch_failed", 1: "not_detected", 2: "with_the_rotor"}
"""Bits of the flag sum, the gravest first."""

LASTING: Final = frozenset({"sensor_stuck", "bad_link", "licence"})
"""Troubles that stay until a person has mended something: an alarm; the others pass with the coup."""


class Command(NamedTuple):
    """What a technician can have sent."""

    line: str
    """What is sent; a value follows it."""
    changes: bool = True
    """It moves the wheel or sets something: not while a table plays."""
    value: str = ""
    """Expression for its value; empty: it takes none."""
    spelt: str = ""
    """The value as the technician is told."""
    answer_s: float = 3.0
    """How long the answer may take; 0 = there is none."""


COMMANDS: Final[Mapping[str, Command]] = {
    "selftest": Command("*F", answer_s=310.0),
    "settings": Command("*O", changes=False),
    "get": Command("*T ", False, "[A-Za-z]", "a parameter's letter"),
    "version": Command("*", False, "[KSVv]", "K, S, V or v"),
    "position": Command("*A", changes=False),
    "clock": Command("*d g", changes=False),
    "poll": Command("*X", changes=False, answer_s=0),
    "statistics": Command("*w", changes=False),
    "wins": Command("*W", changes=False),
    "misfires": Command("*M", changes=False),
    "log": Command("*s ", False, "[tre]", "t, r or e"),
    "mode": Command("*o ", True, "[0-9]{1,5}", "the sum of the mode bits, 0 to 65535"),
    "set": Command(
        "*T ", True, "[a-z] [!-)+-~][ -)+-~]*", "a parameter's small letter, a space and its new value: `h 60`"
    ),
    "save": Command("*T f"),
    "calibrate": Command("*C"),
    "sensors_on": Command("*I 4"),
    "sensors_off": Command("*I 0"),
    "restart": Command("*R", answer_s=0),
    "start": Command("*u 1"),
    "start_ccw": Command("*u 3"),
    "power_on": Command("*P 1"),
    "power_off": Command("*P 0"),
}


def command_line(name: str, args: Mapping[str, object]) -> str:
    """The line that asks the wheel; raises ValueError saying what there is."""
    if name not in COMMANDS:
        raise ValueError(f"slingshot2 has no command {name!r}; there are: {', '.join(COMMANDS)}")
    command = COMMANDS[name]
    if not command.value:
        if args:
            raise ValueError(f"{name}: takes no arguments, got {', '.join(sorted(args))}")
        return command.line
    value = args.get("value")
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if set(args) != {"value"} or not re.fullmatch(command.value, text) or (name == "mode" and int(text) > 65535):
        raise ValueError(f"{name}: needs `value` alone: {command.spelt}")
    return command.line + (text.upper() if name == "get" else text)


def verdict(letter: str, text: str) -> Answer:
    """What the wheel's answer `*letter text` means to the technician."""
    said = f"*{letter} {text}".rstrip()
    if text == "BUSY":
        return Answer(False, f"{said} : occupé, seulement cylindre fermé (état 6)")
    if text == "NO":
        return Answer(False, f"{said} : refusé, pas dans cet état du cylindre")
    if letter != "F" or text == "0":
        return Answer(True, said)
    _, advice = selftest(text)
    return Answer(False, f"{said} : {advice}")


def selftest(code: str) -> tuple[str, str]:
    """Name of what a self-test found by its code other than 0, and what to do about it."""
    unknown = (code, "Code inconnu de l'autotest : appeler le fabricant.")
    return SELFTEST.get(int(code), unknown) if code.isdecimal() else unknown
