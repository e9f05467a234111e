"""Validity, line by line: what each breach does to its coup, read from the code and held against the design.

`void` only where the text itself says so, or a named person does; `held` where the draw itself is in question; `noted`
for everything else. Breaches whose weight hangs on how late or on who was silent: test_wheel and test_table.
"""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from pathlib import Path

from rules.words import CATALOGUE

RULES = Path(__file__).parents[2] / "rules"
VOID = {"moins_de_trois_tours", "obstruction", "annule_par_decision"}
HELD = {
    "direction_non_alternee",
    "relance_apres_rnvp",
    "cylindre_non_actionne",
    "bille_dans_le_sens_du_cylindre",
    "bille_perdue",
    "sens_de_bille_en_doute",
    "rnvp_absent",
    "tirage_avant_rnvp",
    "appareil_perdu",
    "entrees_perdues",
    "tirage_non_observe",
    "tirage_sans_resultat",
    "lancer_non_vu",
    "case_inconnue",
    "resultat_recupere",
    "sources_en_desaccord",
    "obstruction_dite_apres",
    "jeton_dit_apres",
}
NOTED = {
    "faites_vos_jeux_absent",
    "lanceur_inconnu",
    "lanceur_hors_roulement",
    "roulement_non_suivi",
    "trop_de_joueurs",
    "change_impossible",
    "piles_non_reconstituees",
    "change_interdit",
    "appareil_douteux",
    "case_confirmee",
    "resultat_manuel",
}
WEIGHED = {
    "rnvp_en_avance",
    "rnvp_en_retard",
    "source_manquante",
    "mise_retiree_apres_cloture",
    "prison_intouchable",
    "pieces_inegales",
    "pieces_au_dessus_du_plein",
}
"""Found under a code or with a severity that the code works out."""


def found_in_the_code() -> dict[str, set[str]]:
    """Severities by code: every `Found(code=..., severity=...)` and every `found(code, requirement, severity)`."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in RULES.rglob("*.py"):
        module = importlib.import_module(".".join(path.relative_to(RULES.parent).with_suffix("").parts))
        for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
            named = {word.arg: word.value for word in call.keywords}
            called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            code, severity = named.get("code"), named.get("severity")
            if called == "found" and len(call.args) == 3:
                code, severity = call.args[0], call.args[2]
            name = code.value if isinstance(code, ast.Constant) else getattr(module, getattr(code, "id", ""), None)
            if called in {"found", "Found"} and isinstance(name, str) and isinstance(severity, ast.Attribute):
                found[name].add(severity.attr)
    return dict(found)


def test_every_breach_weighs_what_the_design_says() -> None:
    expected = [(VOID, "VOID"), (HELD, "HELD"), (NOTED, "NOTED")]
    assert found_in_the_code() == {code: {severity} for codes, severity in expected for code in codes}


def test_every_breach_has_its_sentence() -> None:
    assert {*VOID, *HELD, *NOTED, *WEIGHED} <= CATALOGUE.keys()
