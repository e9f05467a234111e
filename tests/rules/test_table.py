"""What all games share, on the toy game: seance, stakes, verdict, devices, disputes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from rules.decisions import (
    AlarmCleared,
    AlarmRaised,
    BetsClosed,
    Breach,
    CancelTimer,
    CoupEnded,
    Ignored,
    Offer,
    Phase,
    PhaseChanged,
    Refused,
    SetTimer,
    Settled,
    Severity,
    Signal,
    StakeAccepted,
    StakeDoubtful,
    StakeRefused,
    Status,
)
from rules.facts import (
    BallDropped,
    DeviceBack,
    DeviceLost,
    Doubtful,
    LidClosed,
    LidOpened,
    Overrun,
    SpinObstructed,
    SpinStopped,
    TimerElapsed,
)
from rules.game import House, always
from rules.table import Table
from rules.verdict import exchanged
from tests.rules.playbook import CCW, CW, MS, Play
from tests.rules.toy import HOUSE, TOY


def play(house: House = HOUSE) -> Play:
    return Play(Table(TOY, house))


def opened(house: House = HOUSE) -> Play:
    game = play(house)
    game.command("attest", what="verification")
    game.command("attest", what="verification", role="croupier", by="M. Bon")
    game.command("open")
    assert game.state.phase is Phase.MISES_OUVERTES
    return game


def drawn(number: int = 3, house: House = HOUSE) -> Play:
    """A coup with a stake of J1 on every kind, read as `number` by both sources."""
    game = opened(house)
    game.chip("plein:3", 200)
    game.chip("haut", 400)
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(number)
    game.read(number, "console")
    return game


# --- seance ----------------------------------------------------------------------------------------------------------


def test_a_table_opens_only_with_every_signature_of_its_game() -> None:
    game = play()
    game.command("open")
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="verification")
    assert game.state.phase is Phase.FERME
    game.command("open")
    assert "verification (comite + croupier)" in game.one(Refused).text
    game.command("attest", what="verification", role="croupier", by="M. Bon")
    assert game.one(PhaseChanged).phase is Phase.VERIFIEE
    game.command("open")
    assert game.one(PhaseChanged) == PhaseChanged(phase=Phase.MISES_OUVERTES, coup=1)
    assert (game.state.seance, game.state.partie, game.state.coup_no) == (1, 1, 1)
    assert game.state.limits is not None
    assert game.state.limits.minimum == 100


def test_who_may_not_sign_is_told_who_may() -> None:
    game = play()
    game.command("attest", what="verification", role="chef")
    assert game.one(Refused).code == "role_non_habilite"
    game.command("attest")
    assert game.one(Refused).code == "argument_manquant"
    game.command("attest", what="equipe_au_complet", role="chef")  # attested, recorded, not needed
    assert game.codes() == ["attestation"]


def test_signing_twice_counts_once() -> None:
    game = play()
    game.command("attest", what="verification")
    game.command("attest", what="verification", by="M. Noir")
    assert [entry.by for entry in game.state.attestations] == ["M. Noir"]


@pytest.mark.parametrize("minimum", [True, "200", 99, None])
def test_an_impossible_minimum_is_refused(minimum: object) -> None:
    game = play()
    game.command("attest", what="verification")
    game.command("attest", what="verification", role="croupier")
    game.command("open", minimum_cents=minimum)
    assert game.told(Refused)
    game.command("open", maxima="much")
    assert game.one(Refused).code == "montant_impossible"
    game.command("open", minimum_cents=200)
    assert game.state.limits is not None
    assert game.state.limits.minimum == 200


def test_opening_or_closing_twice_is_refused() -> None:
    game = opened()
    game.command("open")
    assert game.one(Refused).code == "deja_ouverte"
    assert play().command("close")[0] == Refused(command="close", code="deja_fermee", text="La table est déjà fermée")


def test_closing_needs_the_cover_and_gives_back_the_stakes() -> None:
    game = opened()
    game.chip("haut", 400)
    game.command("close")
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    assert game.one(StakeAccepted).cents == 0
    assert game.one(PhaseChanged) == PhaseChanged(phase=Phase.FERME, coup=0)
    assert (game.state.phase, game.state.coup, game.state.coup_no) == (Phase.FERME, None, 0)


def test_a_cover_with_a_contact_signs_for_itself() -> None:
    game = opened()
    game.do(LidClosed(at_ns=game.at(), source="lid"))
    game.do(LidOpened(at_ns=game.at(), source="lid"))
    game.command("close")
    assert game.told(Refused)
    game.do(LidClosed(at_ns=game.at(), source="lid"))
    game.command("close")
    assert game.state.phase is Phase.FERME


def test_the_minimum_changes_in_mid_seance_only_by_closing_with_a_new_encaisse() -> None:
    game = opened()
    game.command("limits", minimum_cents=300)
    assert game.one(Refused).code == "fermer_d_abord"
    game.command("limits", minimum_cents=100)  # no change is no breach
    assert not game.told(Refused)
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("open", minimum_cents=300)
    assert game.one(Refused).code == "attestation_manquante"
    game.command("attest", what="encaisse")
    game.command("open", minimum_cents=300)
    assert (game.state.seance, game.state.partie) == (1, 2)
    assert game.state.limits is not None
    assert game.state.limits.minimum == 300
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("open", minimum_cents=400)
    assert game.told(Refused)  # the signature served once


def test_a_frozen_minimum_waits_for_the_next_seance() -> None:
    game = Play(Table(replace(TOY, minimum_change=("seance", "R-TOY")), HOUSE))
    game.command("limits", minimum_cents=300)
    assert game.codes() == ["limites"]
    game.command("attest", what="verification")
    game.command("attest", what="verification", role="croupier")
    game.command("open")
    game.command("limits", minimum_cents=400)
    assert game.one(Refused).code == "minimum_fige"
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    game.command("open", minimum_cents=400)
    assert game.one(Refused).code == "minimum_fige"
    game.command("close", end_of_seance=True)
    assert not game.state.seance_open
    game.command("attest", what="verification")
    game.command("attest", what="verification", role="croupier")
    game.command("open", minimum_cents=400)
    assert game.state.seance == 2


def test_the_seance_ends_with_the_close() -> None:
    game = opened()
    game.command("attest", what="couvercle", role="chef")
    game.command("close", end_of_seance=True)
    assert (game.state.phase, game.state.seance_open, game.state.attestations) == (Phase.FERME, False, ())
    assert game.codes() == ["fermeture", "fin_de_seance"]


def test_no_end_of_seance_with_stakes_in_prison() -> None:
    game = drawn(1)
    game.choose("zero", "prison")
    game.command("attest", what="couvercle", role="chef")
    game.command("close", end_of_seance=True)
    assert game.one(Refused).code == "mises_en_prison"
    game.command("close")  # in mid-seance they wait
    game.command("close", end_of_seance=True)
    assert game.one(Refused).code == "mises_en_prison"
    game.take("haut", 400)
    assert game.told(Ignored)
    assert [stake.carried for stake in game.state.stakes] == ["prison"]
    assert game.state.coup_no == 1


def test_no_closing_in_a_draw() -> None:
    game = opened()
    game.spin(CW)
    game.command("close")
    assert game.one(Refused).code == "coup_en_cours"


def test_an_interrupted_table_takes_nothing_and_forgets_nothing() -> None:
    game = opened()
    game.command("interrupt")
    game.chip("haut", 400)
    assert game.one(StakeRefused).code == "table_fermee"
    game.spin(CW)
    assert game.told(Ignored)
    game.do(SpinStopped(at_ns=game.at(), source="wheel", direction=CW, travel=9, per_turn=52))
    assert game.state.last_direction is CW
    game.command("interrupt")
    assert game.told(Refused)
    game.command("resume")
    game.command("resume")
    assert game.one(Refused).code == "pas_interrompue"
    game.spin(CW)
    assert game.one(Breach).code == "direction_non_alternee"


def test_public_options_are_those_of_the_game_and_set_before_the_seance() -> None:
    game = play()
    game.command("options", couleur_du_tapis="vert")
    assert "plus_de_douze_joueurs" in game.one(Refused).text
    game.command("options", plus_de_douze_joueurs=True)
    assert game.state.public_options == {"plus_de_douze_joueurs": True}
    game = opened()
    game.command("options", plus_de_douze_joueurs=True)
    assert game.one(Refused).code == "option_figee"


# --- stakes ----------------------------------------------------------------------------------------------------------


def test_chips_add_up_on_a_spot_and_keep_their_id() -> None:
    game = opened()
    game.chip("haut", 200)
    first = game.one(StakeAccepted)
    game.chip("haut", 300)
    assert game.one(StakeAccepted) == replace(first, cents=500)
    game.take("haut", 100)
    assert game.one(StakeAccepted).cents == 400
    game.take("haut", 400)
    assert game.state.stakes == ()
    game.take("haut", 400)
    assert game.told(Ignored)


@pytest.mark.parametrize(
    ("spot", "cents", "tableau", "code"),
    [
        ("plein:9", 100, 1, "combinaison_inexistante"),
        ("plein:03", 100, 1, "combinaison_inexistante"),
        ("cheval:1-2", 100, 1, "combinaison_inexistante"),
        ("haut", 0, 1, "montant_impossible"),
        ("haut", -100, 1, "montant_impossible"),
        ("haut", 100, 3, "tableau_inconnu"),
        ("plein:3", 1001, 1, "au_dessus_du_maximum"),
    ],
)
def test_what_may_not_lie_there_is_pushed_back(spot: str, cents: int, tableau: int, code: str) -> None:
    game = opened()
    game.chip(spot, cents, tableau=tableau)
    assert game.one(StakeRefused).code == code
    assert game.state.stakes == ()


def test_the_maximum_is_summed_over_the_tableaux_for_each_player() -> None:
    game = opened()
    game.chip("plein:3", 600)
    game.chip("plein:3", 500, tableau=2)
    assert "100 de trop" in game.one(StakeRefused).text
    game.chip("plein:3", 1000, player="J2", tableau=2)
    assert game.told(StakeAccepted)


def test_the_minimum_is_judged_at_once_for_a_person_and_at_the_close_for_a_reader() -> None:
    from rules.facts import Origin

    game = opened()
    game.chip("haut", 50, origin=Origin.PERSON)
    assert game.one(StakeRefused).code == "sous_le_minimum"
    game.chip("haut", 50)
    game.chip("plein:1", 100)
    game.spin(CW)
    game.say("rien_ne_va_plus")
    assert game.one(StakeRefused).spot == "haut"
    assert [stake.type for stake in game.state.stakes] == ["plein"]


def test_more_players_than_allowed_are_noted() -> None:
    game = opened(replace(HOUSE, max_players=None))
    for n in range(13):
        game.chip("haut", 100, player=f"J{n}")
        assert bool(game.told(Breach)) == (n == 12)
    game = opened()  # a house may allow fewer
    for player in ("J1", "J2", "J3"):
        game.chip("haut", 100, player=player)
        assert not game.told(Breach)
    game.chip("haut", 100, player="J4")
    assert game.one(Breach).severity is Severity.NOTED


def test_a_game_without_a_limit_of_players_counts_none() -> None:
    game = Play(Table(replace(TOY, most_players=None, needs=always()), HOUSE))
    game.command("open")
    for player in ("J1", "J2", "J3", "J4"):
        game.chip("haut", 100, player=player)
    assert not game.told(Breach)


def test_a_stake_after_the_call_does_not_exist() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    closed = game.one(BetsClosed).at_ns
    game.chip("haut", 200, at_ns=closed + 1)
    assert (game.one(StakeRefused).code, game.one(StakeRefused).requirement) == ("mise_tardive", "R-GEN-05")
    game.chip("haut", 200, at_ns=closed - 2, until_ns=closed - 1)  # told late, placed in time
    assert game.told(StakeAccepted)


def test_a_stake_that_nobody_can_date_is_doubtful_and_never_holds_the_draw() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    closed = game.one(BetsClosed).at_ns
    game.chip("haut", 200, at_ns=closed - 1, until_ns=closed + 1)
    doubt = game.one(StakeDoubtful)
    assert (doubt.player, doubt.tableau, doubt.spot, doubt.cents) == ("J1", 1, "haut", 200)
    assert doubt.why.startswith(f"Mise {doubt.id} de J1 sur haut (200 centimes)")  # who decides must know about what
    doubtful = doubt.id
    game.chip("plein:9", 200, at_ns=closed - 1, until_ns=closed + 1)
    assert game.told(StakeRefused)
    game.read(3)
    game.read(3, "console")
    assert game.one(CoupEnded).status is Status.VALID
    assert all(not entry.lines for entry in game.told(Settled))
    game.command("resolve", stake="m77", **{"as": "accepted"})
    assert game.one(Refused).code == "mise_inconnue"
    assert doubtful in game.one(Refused).text
    game.command("resolve", stake=doubtful, **{"as": "perhaps"})
    assert game.told(Refused)
    game.command("resolve", stake=doubtful, **{"as": "accepted"})
    settled = game.one(Settled)
    assert (settled.coup, settled.lines[0].net) == (1, Fraction(200))
    assert game.state.doubts == ()


def test_a_doubtful_stake_resolved_before_the_result_plays_or_goes_back() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    closed = game.one(BetsClosed).at_ns
    game.chip("haut", 200, at_ns=closed, until_ns=closed)
    game.chip("plein:1", 100, at_ns=closed, until_ns=closed)
    first, second = (entry.stake.id for entry in game.state.doubts)
    game.command("resolve", stake=first, **{"as": "accepted"})
    game.command("resolve", stake=second, **{"as": "refused"})
    assert game.one(StakeRefused).spot == "plein:1"
    assert [stake.type for stake in game.state.stakes] == ["haut"]


def test_an_earlier_call_told_later_pushes_back_what_came_in_between() -> None:
    game = opened()
    game.chip("haut", 200)
    game.chip("haut", 300, at_ns=1000 * MS)
    game.chip("plein:1", 100, at_ns=1000 * MS, until_ns=1010 * MS)
    game.spin(CW)
    game.say("rien_ne_va_plus", at_ns=999 * MS, until_ns=999 * MS)
    assert [entry.cents for entry in game.told(StakeRefused)] == [300, 100]  # of the first only the top-up
    assert [stake.cents for stake in game.state.stakes] == [200]
    game.say("rien_ne_va_plus", at_ns=1001 * MS)  # a second call closes nothing
    assert not game.told(BetsClosed)
    game = opened()
    game.chip("plein:1", 100, at_ns=1000 * MS, until_ns=1010 * MS)
    game.say("rien_ne_va_plus", at_ns=1005 * MS, until_ns=1005 * MS)
    assert game.told(StakeDoubtful)
    assert game.state.stakes == ()


def test_chips_taken_after_the_call_stay_engaged() -> None:
    game = opened()
    game.chip("haut", 200)
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.take("haut", 200)
    assert game.one(Breach).code == "mise_retiree_apres_cloture"
    assert game.state.stakes[0].cents == 200


def test_a_stake_in_prison_can_neither_be_taken_nor_added_to() -> None:
    game = drawn(1)
    game.choose("zero", "prison")
    game.say("faites_vos_jeux")
    game.take("haut", 400)
    assert game.one(Breach).code == "prison_intouchable"
    game.chip("haut", 100)  # a new stake beside it
    assert [(stake.cents, stake.carried) for stake in game.state.stakes] == [(400, "prison"), (100, "")]
    game.spin(CCW)
    game.say("rien_ne_va_plus")
    assert {stake.carried for stake in game.state.stakes} == {"prison", ""}


def test_a_closed_table_takes_no_stake() -> None:
    game = play()
    game.chip("haut", 200)
    assert game.one(StakeRefused).code == "table_fermee"


# --- verdict ---------------------------------------------------------------------------------------------------------


def test_a_coup_runs_from_the_stakes_to_the_payment() -> None:
    game = drawn(3)
    ended = game.one(CoupEnded)
    assert (ended.status, ended.outcome, ended.sources) == (
        Status.VALID,
        {"number": 3, "chances": []},
        {"wheel_sensor": 3, "console": 3},
    )
    first, second = game.told(Settled)
    assert (first.tableau, second.tableau, second.lines) == (1, 2, ())
    assert [(entry.type, entry.net) for entry in first.lines] == [("plein", Fraction(600)), ("haut", Fraction(400))]
    assert [transfer.target for transfer in first.transfers] == ["player:J1", "player:J1"]
    assert first.order == (("m2",), ("m1",))
    assert first.player_order == (("J1",), ("J1",))
    assert [entry.name for entry in game.all if isinstance(entry, CancelTimer)] == ["tirage", "accord"]
    assert game.state.phase is Phase.REGLEMENT
    assert [stake.cents for stake in game.state.stakes] == [200, 400]  # a winning stake left down plays again
    game.say("faites_vos_jeux")
    assert game.one(PhaseChanged) == PhaseChanged(phase=Phase.MISES_OUVERTES, coup=2)


@pytest.mark.parametrize("begin", ["chip", "spin", "stake", "say"])
def test_the_next_coup_begins_with_whatever_begins_it(begin: str) -> None:
    game = drawn(2)
    {
        "chip": lambda: game.chip("haut", 100),
        "spin": lambda: game.spin(CCW),
        "stake": lambda: game.command("stake", spot="haut", cents=100, player="J1"),
        "say": lambda: game.say("faites_vos_jeux"),
    }[begin]()
    assert game.state.coup_no == 2
    assert game.state.coup is not None
    assert game.state.coup.launched == (begin == "spin")


def test_taking_chips_by_command_does_not_begin_a_coup() -> None:
    game = drawn(3)
    game.command("stake", spot="haut", cents=100, player="J1", remove=True)
    assert (game.state.coup_no, game.state.phase) == (1, Phase.REGLEMENT)
    assert [stake.cents for stake in game.state.stakes] == [200, 300]


def test_sources_that_disagree_hold_the_coup_without_an_outcome() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3)
    game.read(4, "console")
    ended = game.one(CoupEnded)
    assert (ended.status, ended.outcome) == (Status.HELD, None)
    assert game.state.phase is Phase.LITIGE
    assert Signal(lamp="litige", on=True) in game.last
    assert game.one(AlarmRaised).name == "litige"


def test_a_person_who_says_nothing_is_noted_a_silent_instrument_is_held() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3)
    assert game.one(SetTimer).at_ns == game.now + 3000 * MS
    game.read(3)  # the same source again arms nothing anew
    assert not game.told(SetTimer)
    game.elapse("accord")
    ended = game.one(CoupEnded)
    assert (ended.status, [entry.code for entry in ended.reasons]) == (Status.VALID, ["source_manquante"])
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3, "console")
    game.elapse("accord")
    assert game.one(CoupEnded).status is Status.HELD


def test_an_instrument_that_says_nothing_holds_also_after_a_person_who_says_nothing() -> None:
    game = opened(replace(HOUSE, sources=("console", "wheel_sensor", "second")))
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3, "second")
    game.elapse("accord")
    ended = game.one(CoupEnded)
    assert [(entry.code, entry.severity) for entry in ended.reasons] == [("source_manquante", Severity.HELD)]
    assert ended.status is Status.HELD


def test_a_recovered_result_needs_a_second_source() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3, recovered=True)
    game.elapse("accord")
    ended = game.one(CoupEnded)
    assert (ended.status, ended.recovered) == (Status.HELD, True)
    assert "resultat_recupere" in [entry.code for entry in ended.reasons]
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3, recovered=True)
    game.read(3, "console")
    assert game.one(CoupEnded).status is Status.VALID


@pytest.mark.parametrize(("seen", "number"), [("confirme", 3), (3, 3), (2, 2)])
def test_the_eye_decides_between_two_cells(seen: int | str, number: int) -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3, cell=-1)
    assert game.codes() == ["confirmer_la_case"]
    if isinstance(seen, str):
        game.say(seen)
    else:
        game.read(seen, "console")
    ended = game.one(CoupEnded)
    assert ended.outcome == {"number": number, "chances": []}
    assert (ended.status, [entry.code for entry in ended.reasons]) == (Status.VALID, ["case_confirmee"])


def test_an_eye_that_sees_a_third_cell_holds_the_coup() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.say("confirme")
    assert game.told(Ignored)
    game.read(3, cell=-1)
    game.read(4, "console")
    assert game.one(CoupEnded).status is Status.HELD


def test_nothing_to_confirm_is_ignored() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3)
    game.say("confirme")
    assert game.told(Ignored)


def test_a_void_coup_gives_the_stakes_back_and_opens_the_next() -> None:
    game = opened()
    game.chip("haut", 400)
    game.spin(CW)
    game.say("rien_ne_va_plus")
    closed = game.one(BetsClosed).at_ns
    game.chip("plein:1", 100, at_ns=closed, until_ns=closed)
    game.do(SpinObstructed(at_ns=game.at(), source="wheel", why="brake"))
    ended = game.one(CoupEnded)
    assert (ended.status, ended.coup, ended.outcome) == (Status.VOID, 1, None)
    assert (game.state.phase, game.state.coup_no) == (Phase.MISES_OUVERTES, 2)
    assert [stake.cents for stake in game.state.stakes] == [400, 100]  # in time for the next call
    assert game.state.doubts == ()


def test_the_worst_breach_gives_the_status_and_a_breach_counts_once() -> None:
    game = opened()
    game.spin(CW)
    game.spin(CW)
    assert game.one(Breach).severity is Severity.HELD
    game.spin(CW)
    assert not game.told(Breach)
    game.say("rien_ne_va_plus")
    game.do(SpinObstructed(at_ns=game.at(), source="wheel", why="brake"))
    assert game.one(CoupEnded).status is Status.VOID
    assert len(game.one(CoupEnded).reasons) == 2


def test_a_house_may_hold_what_the_law_only_notes() -> None:
    game = drawn(3, replace(HOUSE, raise_to_held=("appareil_douteux",)))
    assert game.one(CoupEnded).status is Status.VALID
    game.say("faites_vos_jeux")
    game.spin(CCW)
    game.say("rien_ne_va_plus")
    game.elapse("toy")
    assert game.one(Breach).severity is Severity.HELD


def test_a_stopped_launch_is_no_coup_and_a_relaunch_is_the_same() -> None:
    game = opened()
    game.spin(CW)
    game.spin(CW)
    game.do(SpinStopped(at_ns=game.at(), source="wheel", direction=CW, travel=1, per_turn=4))
    assert game.one(Signal) == Signal(lamp="sens", on=False)  # what the game had lit for this launch
    assert (game.state.phase, game.state.coup_no) == (Phase.MISES_OUVERTES, 1)
    assert game.state.coup is not None
    assert (game.state.coup.breaches, game.state.coup.launched) == ((), False)
    assert game.state.timers == ()
    game.spin(CCW)
    game.say("rien_ne_va_plus")
    game.elapse("toy")
    game.say("jeton_dans_le_cylindre")
    assert [entry.code for entry in game.state.coup.breaches] == ["appareil_douteux"]
    assert game.state.coup.closed_at_ns is None
    game.chip("haut", 100)
    assert game.told(StakeAccepted)


def test_a_draw_without_result_is_held_in_the_end() -> None:
    game = opened()
    game.spin(CW)
    game.elapse("tirage")
    ended = game.one(CoupEnded)
    assert (ended.status, ended.reasons[0].code) == (Status.HELD, "tirage_sans_resultat")


def test_stale_timers_change_nothing() -> None:
    game = drawn(3)
    for name in ("tirage", "accord", "choix", "toy", "inconnue"):
        game.do(TimerElapsed(at_ns=game.at(), source="timer", name=name))
        assert game.told(Ignored)
    game = drawn(1)
    state = replace(game.state, timers=(*game.state.timers, replace(game.state.timers[0], name="accord")))
    _, decisions = game.table.step(state, TimerElapsed(at_ns=game.at(), source="timer", name="accord"))
    assert isinstance(decisions[0], Ignored)


def test_a_timer_that_was_cancelled_while_it_elapsed_decides_nothing() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3, cell=-1)  # waits for the eye, not for another source
    assert game.state.phase is Phase.RESULTAT
    game.do(TimerElapsed(at_ns=game.at(), source="timer", name="accord"))
    assert [type(entry) for entry in game.last] == [Ignored]


# --- choices ---------------------------------------------------------------------------------------------------------


def test_choices_are_offered_and_the_settlement_waits_for_them() -> None:
    game = drawn(1)
    offer = game.one(Offer)
    assert offer.choices == ("retire", "prison")
    assert not game.told(Settled)
    game.choose("zero", "prison", player="J2")
    assert game.told(Ignored)
    game.choose(offer.what, "perhaps")
    assert game.told(Ignored)
    game.choose(offer.what, "prison")
    settled = game.told(Settled)[0]
    assert [(entry.status, entry.net) for entry in settled.lines] == [("lose", -200), ("prison", None)]
    assert game.state.phase is Phase.REGLEMENT


def test_who_does_not_choose_gets_the_choice_of_the_text() -> None:
    for end in ("elapse", "choix_clos"):
        game = drawn(1)
        if end == "elapse":
            game.elapse("choix")
        else:
            game.say("choix_clos")
        assert [entry.status for entry in game.told(Settled)[0].lines] == ["lose", "partial"]


def test_two_offers_are_answered_one_by_one() -> None:
    game = opened()
    game.chip("haut", 400)
    game.chip("haut", 200, player="J2")
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(1)
    game.read(1, "console")
    game.choose("zero", "prison", player="J2")
    assert game.state.phase is Phase.CHOIX
    game.command("choice", player="J1", what="zero", value="retire")
    assert [entry.status for entry in game.told(Settled)[0].lines] == ["partial", "prison"]


def test_the_last_coup_offers_nothing() -> None:
    game = opened()
    game.chip("haut", 400)
    game.say("dernier_coup")
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(1)
    game.read(1, "console")
    assert game.told(Settled)[0].lines[0].status == "partial"


def test_the_last_coup_is_announced_at_a_table_that_plays() -> None:
    game = play()
    game.say("dernier_coup")
    assert game.one(Ignored).why.startswith("La table ne joue pas")
    game.command("last_coup", role="chef")
    assert game.one(Refused).code == "sans_effet"
    assert "La table ne joue pas" in game.one(Refused).text


# --- disputes --------------------------------------------------------------------------------------------------------


def held() -> Play:
    game = opened()
    game.chip("haut", 400)
    game.spin(CW)
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3)
    game.read(3, "console")
    assert game.state.phase is Phase.LITIGE
    return game


def test_a_held_coup_asks_for_a_person_and_says_why() -> None:
    told = "Coup 1 retenu, un chef doit décider : Manœuvre dans le même sens que la précédente"
    assert held().one(AlarmRaised).text == told


def test_a_held_coup_is_resolved_valid_and_then_paid() -> None:
    game = held()
    assert not game.settled
    game.command("resolve", role="chef", by="M. Vert", why="vu", **{"as": "valid"})
    ended = game.one(CoupEnded)
    assert (ended.kind, ended.status, ended.coup) == ("resolution", Status.VALID, 1)
    assert ended.manual == {"by": ["M. Vert"], "role": "chef", "why": "vu"}
    assert [reason.code for reason in ended.reasons] == ["direction_non_alternee"]
    assert game.told(AlarmCleared)
    assert Signal(lamp="litige", on=False) in game.last
    assert game.told(Settled)[0].lines[0].net == 400


def test_a_held_coup_is_resolved_void() -> None:
    game = held()
    game.command("resolve", **{"as": "void"})
    assert game.one(CoupEnded).status is Status.VOID
    assert not game.told(Settled)
    assert game.state.phase is Phase.MISES_OUVERTES
    game = held()
    game.command("void", why="roue touchée")
    assert game.one(CoupEnded).kind == "resolution"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({}, "argument_manquant"),
        ({"as": "perhaps"}, "argument_manquant"),
        ({"as": "valid", "outcome": 9}, "resultat_requis"),
        ({"as": "valid", "outcome": [3]}, "resultat_requis"),
    ],
)
def test_an_unclear_resolution_is_refused(args: dict[str, Any], code: str) -> None:
    game = held()
    game.command("resolve", **args)
    assert game.one(Refused).code == code
    assert game.state.phase is Phase.LITIGE


def test_in_a_dispute_nothing_opens_and_the_direction_is_remembered() -> None:
    game = held()
    game.spin(CCW)
    assert (game.state.last_direction, game.state.phase) == (CCW, Phase.LITIGE)
    game.chip("haut", 100)
    assert game.told(StakeRefused)
    game.say("faites_vos_jeux")
    assert game.told(Ignored)
    game.read(2)
    assert game.told(Ignored)
    assert drawn(3).command("resolve", **{"as": "valid"})[0] == Refused(
        command="resolve", code="pas_de_litige", text="Aucun coup n'est retenu"
    )


def test_a_source_that_contradicts_afterwards_holds_the_coup_anew() -> None:
    game = drawn(3)
    game.read(3, "wheel_sensor")
    assert game.told(Ignored)
    game.read(9, "console")
    assert game.told(Ignored)
    game.read(4, "console")
    ended = game.one(CoupEnded)
    assert (ended.kind, ended.status, ended.outcome) == ("revision", Status.HELD, None)
    assert game.state.phase is Phase.LITIGE
    game.command("resolve", outcome=2, **{"as": "valid"})
    assert [entry.net for entry in game.told(Settled)[0].lines] == [-200, -400]
    game.read(1, "console")  # and once more, after that was decided
    assert game.one(Breach).text.endswith("wheel_sensor 3, console 1")
    assert game.one(CoupEnded).kind == "revision"


def test_a_revised_coup_that_becomes_void_gives_everything_back() -> None:
    game = drawn(3)
    game.read(4, "console")
    game.command("resolve", **{"as": "void"})
    assert [entry.status for entry in game.told(Settled)[0].lines] == ["push", "push"]
    assert [stake.cents for stake in game.state.stakes] == [200, 400]


def test_a_contradiction_while_players_choose_takes_the_choices_back() -> None:
    game = drawn(1)
    game.read(3, "console")
    assert (game.state.phase, game.state.offers) == (Phase.LITIGE, {})
    assert all(timer.name != "choix" for timer in game.state.timers)
    game.command("resolve", outcome=3, **{"as": "valid"})
    assert [entry.net for entry in game.told(Settled)[0].lines] == [600, 400]


def test_a_coup_whose_bets_are_closed_is_played() -> None:
    game = opened()
    game.say("rien_ne_va_plus")
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    assert game.one(Refused).code == "coup_en_cours"
    game.command("interrupt")
    assert game.one(Refused).code == "pas_maintenant"


def test_a_doubtful_stake_is_in_time_for_the_call_after_a_relaunch() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    closed = game.one(BetsClosed).at_ns
    game.chip("haut", 200, at_ns=closed, until_ns=closed)
    game.say("jeton_dans_le_cylindre")
    assert game.one(StakeAccepted).cents == 200
    assert (game.state.doubts, len(game.state.stakes)) == ((), 1)


def test_a_doubt_of_an_earlier_coup_stays_a_doubt() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    closed = game.one(BetsClosed).at_ns
    game.chip("haut", 200, at_ns=closed, until_ns=closed)
    game.read(3)
    game.read(3, "console")
    game.spin(CCW)
    game.say("jeton_dans_le_cylindre")
    assert len(game.state.doubts) == 1


def test_a_named_person_may_annul_a_running_coup() -> None:
    game = opened()
    game.command("void", why="?")
    assert game.one(Refused).code == "pas_de_coup"
    game.spin(CW)
    game.command("void", why="fumée dans la salle", by="M. Vert")
    ended = game.one(CoupEnded)
    assert (ended.status, ended.reasons[-1].code) == (Status.VOID, "annule_par_decision")
    assert ended.manual is not None


def test_a_manual_result_needs_two_persons_and_closed_bets() -> None:
    game = opened()
    game.command("outcome", value=3, second="M. Bon")
    assert game.one(Refused).code == "pas_de_coup"
    game.spin(CW)
    game.command("outcome", value=3, second="M. Bon")
    assert game.one(Refused).code == "mises_encore_ouvertes"
    game.say("rien_ne_va_plus")
    for second in (None, "", "Mme Roux"):
        game.command("outcome", value=3, second=second)
        assert game.one(Refused).code == "deux_personnes"
    for value in (9, [3], None):
        game.command("outcome", value=value, second="M. Bon")
        assert game.one(Refused).code == "resultat_requis"
    game.do(DeviceLost(at_ns=game.at(), source="wheel_sensor", device="wheel_sensor", why="unplugged"))
    game.command("outcome", value=3, second="M. Bon")
    ended = game.one(CoupEnded)
    assert ended.status is Status.VALID
    assert [entry.code for entry in ended.reasons] == ["appareil_perdu", "resultat_manuel"]
    assert ended.manual == {"by": ["Mme Roux", "M. Bon"], "role": "comite", "why": "67-15"}


def test_a_manual_result_does_not_heal_a_breach_of_the_law() -> None:
    game = opened()
    game.spin(CW)
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.command("outcome", value=3, second="M. Bon")
    assert game.one(CoupEnded).status is Status.HELD
    game.command("outcome", value=4, second="M. Bon")
    assert (game.one(CoupEnded).kind, game.one(CoupEnded).status) == ("resolution", Status.VALID)


# --- direction memory ------------------------------------------------------------------------------------------------


def test_an_actuation_during_the_payment_belongs_to_the_next_coup() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(1)
    game.spin(CW)  # while the second source is awaited: the same sense as this coup's
    assert game.state.last_direction is CW
    game.spin(CCW)
    game.spin(CCW)
    game.read(1, "console")
    assert game.one(Breach).code == "direction_non_alternee"  # the last two were in the same sense
    assert game.state.coup is not None
    assert (game.state.coup.no, game.state.coup.launched, game.state.waiting_turn) == (2, True, None)


def test_a_closed_table_remembers_the_direction_too() -> None:
    game = play()
    game.spin(CCW)
    assert game.state.last_direction is CCW
    game = drawn(1)
    game.spin(CCW)  # waits: players choose
    game.choose("zero", "retire")
    game.command("attest", what="couvercle", role="chef")
    game.command("close")
    assert (game.state.last_direction, game.state.waiting_turn) == (CCW, None)
    assert game.one(Refused).code == "coup_en_cours"  # that actuation has begun the next coup


# --- devices ---------------------------------------------------------------------------------------------------------


def lost(game: Play, device: str) -> None:
    game.do(DeviceLost(at_ns=game.at(), source=device, device=device, why="unplugged"))


def test_a_device_lost_between_coups_alarms_and_holds_the_next_draw_only_if_still_lost() -> None:
    game = opened()
    lost(game, "wheel")
    lost(game, "wheel")
    assert game.state.lost == ("wheel",)
    assert game.one(AlarmRaised).name == "device:wheel"
    assert not game.told(Breach)
    game.do(DeviceBack(at_ns=game.at(), source="wheel", device="wheel"))
    assert game.one(AlarmCleared).name == "device:wheel"
    game.spin(CW)
    assert not game.told(Breach)
    game = opened()
    lost(game, "wheel")
    lost(game, "chips")
    game.spin(CW)
    assert game.one(Breach).code == "appareil_perdu"


def test_a_device_lost_in_the_draw_holds_it_and_shortens_the_wait_for_its_reading() -> None:
    game = opened()
    game.spin(CW)
    game.say("rien_ne_va_plus")
    lost(game, "wheel")
    assert not game.told(SetTimer)
    lost(game, "wheel_sensor")
    assert game.one(SetTimer).at_ns == game.now + 10_000 * MS
    game.do(DeviceBack(at_ns=game.at(), source="wheel", device="wheel"))
    assert not game.told(SetTimer)
    game.do(DeviceBack(at_ns=game.at(), source="wheel_sensor", device="wheel_sensor"))
    assert game.one(SetTimer).at_ns == game.now + 120_000 * MS
    lost(game, "console")
    assert not game.told(Breach)
    game.read(3)
    game.read(3, "console")
    assert game.one(CoupEnded).status is Status.HELD


@pytest.mark.parametrize(
    ("fact", "severity"),
    [
        (Overrun(at_ns=9, source="wheel", device="wheel", lost=4), Severity.HELD),
        (Overrun(at_ns=9, source="console", device="console", lost=1), Severity.NOTED),
        (Doubtful(at_ns=9, source="wheel", device="wheel", why="not_observed"), Severity.HELD),
        (Doubtful(at_ns=9, source="wheel", device="wheel", why="dirty"), Severity.NOTED),
        (Doubtful(at_ns=9, source="lid", device="lid", why="not_observed"), Severity.NOTED),
    ],
)
def test_trouble_with_a_device_counts_only_in_the_draw(fact: Overrun | Doubtful, severity: Severity) -> None:
    game = opened()
    game.do(fact)
    assert game.told(Ignored)
    game.spin(CW)
    game.do(fact)
    assert game.one(Breach).severity is severity


# --- commands that tell a fact ---------------------------------------------------------------------------------------


def test_commands_tell_facts() -> None:
    game = opened()
    game.command("stake", spot="haut", cents=300, player="J1", tableau=2)
    assert game.one(StakeAccepted).tableau == 2
    assert not game.told(Refused)
    game.spin(CW)
    game.command("announce", code="rien_ne_va_plus")
    assert game.told(BetsClosed)
    game.read(3, cell=-1)
    game.command("confirm")
    assert game.one(CoupEnded).status is Status.VALID
    game.say("faites_vos_jeux")
    game.spin(CCW)
    game.say("rien_ne_va_plus")
    game.read(3)
    game.command("confirm", value=3)
    assert game.one(CoupEnded).status is Status.VALID


def test_a_told_fact_that_changes_nothing_is_answered_so() -> None:
    game = opened()
    game.command("announce", code="on_danse")
    assert game.one(Refused).code == "sans_effet"
    assert game.one(Refused).text == "Sans effet dans la phase mises_ouvertes : Rien n'attend ce fait"
    game.command("stake", spot="plein:9", cents=300, player="J1")
    assert game.one(Refused).code == "combinaison_inexistante"


def test_a_told_reading_that_only_waits_for_others_is_not_refused() -> None:
    game = opened(replace(HOUSE, sources=("wheel_sensor", "console", "second")))
    game.spin(CW)
    game.say("rien_ne_va_plus")
    game.read(3)
    game.command("confirm", value=3)
    assert game.last == ()
    assert game.state.coup is not None
    assert [entry.source for entry in game.state.coup.readings] == ["wheel_sensor", "console"]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("stake", {"spot": "haut", "cents": 300}),
        ("stake", {"spot": "haut", "cents": True, "player": "J1"}),
        ("stake", {"spot": "haut", "cents": 300, "player": "J1", "tableau": "2"}),
        ("announce", {"code": 7}),
        ("choice", {"player": "J1", "what": "zero"}),
        ("confirm", {"value": True}),
        ("confirm", {"value": None}),
        ("dance", {}),
    ],
)
def test_an_incomplete_command_is_refused(name: str, args: dict[str, Any]) -> None:
    game = opened()
    game.command(name, **args)
    assert game.one(Refused).code == "commande_impossible"


def test_what_nobody_waits_for_is_ignored_and_told() -> None:
    game = opened()
    game.do(BallDropped(at_ns=game.at(), source="wheel"))
    assert game.told(Ignored)
    game.say("quelque_chose")
    assert game.told(Ignored)
    game.choose("zero", "prison")
    assert game.told(Ignored)


def test_a_table_that_goes_on_from_another_state_shows_what_that_state_asks_for() -> None:
    """Maintenance is over: what it lit and what it held is not of this table."""
    real, tried = opened(), held()
    over = (Signal(lamp="litige", on=False), AlarmCleared(name="litige"))
    assert exchanged(tried.state, real.state)[-2:] == over
    assert exchanged(tried.state, play().state)[-2:] == over
    assert real.state.coup is not None
    lit = replace(real.state, coup=TOY.coup(no=1, lit=("sens",)))
    assert exchanged(lit, real.state)[0] == Signal(lamp="sens", on=False)
    assert exchanged(play().state, lit)[0] == Signal(lamp="sens", on=True)
    *_, lamp, alarm = exchanged(real.state, tried.state)
    assert lamp == Signal(lamp="litige", on=True)
    assert isinstance(alarm, AlarmRaised)
    assert alarm in tried.all
