"""What the wheel can be asked, what its self-test says, and what to do about it (PROTOCOL.md sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    "bad_link": "Lignes abîmées : câble, masse, vitesse (9600 8N1) ou un second programme sur ce port.",
    "silence": "Le cylindre ne dit plus rien : alimentation, câble croisé, mode 128 (état automatique).",
    "wrong_device": "Un autre appareil répond sur ce port : vérifier les câbles et `match` dans la configuration.",
    "licence": "La licence des numéros bonus a expiré : appeler le fabricant.",
}
"""What to do by the code that `health` shows."""

FLAGS: Final[Mapping[int, str]] = {4: "sensor_stuck", 8: "launch_failed", 1: "not_detected", 2: "with_the_rotor"}
"""Bits of the flag sum, the gravest first."""

_PLAIN: Final[Mapping[str, str]] = {
    "selftest": "*F",
    "settings": "*O",
    "position": "*A",
    "restart": "*R",
    "calibrate": "*C",
    "save": "*T f",
    "version": "*V",
    "clock": "*d g",
    "statistics": "*w",
    "wins": "*W",
    "misfires": "*M",
    "start": "*u 1",
    "start_ccw": "*u 3",
    "power_on": "*P 1",
    "power_off": "*P 0",
    "sensors_on": "*I 4",
    "sensors_off": "*I 0",
    "poll": "*X",
}
_VALUED: Final[Mapping[str, str]] = {"mode": "*o ", "set": "*T ", "get": "*T ", "log": "*s "}
"""Commands that take `value`: a mode sum, `h 60`, `h`, and `t`, `r` or `e`."""

COMMANDS: Final = tuple(sorted((*_PLAIN, *_VALUED)))


def command_line(name: str, args: Mapping[str, object]) -> str:
    """The line that asks the wheel; raises ValueError saying what there is."""
    if name in _PLAIN:
        if args:
            raise ValueError(f"{name}: takes no arguments, got {', '.join(sorted(args))}")
        return _PLAIN[name]
    if name not in _VALUED:
        raise ValueError(f"slingshot2 has no command {name!r}; there are: {', '.join(COMMANDS)}")
    value = args.get("value")
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    allowed = {
        "mode": text.isdecimal() and int(text) <= 65535,
        "set": text[:1].islower() and text[1:2] == " " and len(text) > 2,
        "get": len(text) == 1 and text.isalpha(),
        "log": text in ("t", "r", "e"),
    }[name]
    if set(args) != {"value"} or not allowed or not text.isascii() or not text.isprintable() or "*" in text:
        raise ValueError(
            f"{name}: needs `value` alone: "
            + {
                "mode": "the sum of the mode bits, 0 to 65535",
                "set": "a parameter's small letter, a space and its new value, such as `h 60`",
                "get": "a parameter's letter",
                "log": "t, r or e",
            }[name]
        )
    return _VALUED[name] + (text.upper() if name == "get" else text)
