"""The one catalogue of French sentences: a code and its values become what people read and hear."""

from __future__ import annotations

from typing import Final

CATALOGUE: Final[dict[str, str]] = {
    # --- refusals of stakes ---
    "sous_le_minimum": "Mise de {cents} centimes sous le minimum de {least}",
    "au_dessus_du_maximum": "Mise totale de {total} centimes au-dessus du maximum de {most} : {excess} de trop",
    "mise_tardive": "Mise déposée après « Rien ne va plus » : elle ne participe pas au jeu, à repousser",
    "mise_douteuse": "Impossible de dire si la mise a précédé « Rien ne va plus » : décision d'un chef nécessaire",
    "table_fermee": "La table ne prend pas de mises maintenant",
    "tableau_inconnu": "Ce tableau n'existe pas : tableaux 1 à {most}",
    "montant_impossible": "Le montant doit être un nombre entier positif de centimes",
    # --- breaches that all games share ---
    "trop_de_joueurs": "Plus de {most} joueurs à la table",
    "prison_intouchable": "Une mise en prison ne peut être ni retirée ni complétée (joueur {player})",
    "mise_retiree_apres_cloture": "Mise retirée après « Rien ne va plus » (joueur {player}) : elle reste engagée",
    "sources_en_desaccord": "Les sources ne donnent pas le même résultat : {told}",
    "source_manquante": "La source {source} n'a pas donné le résultat à temps",
    "case_confirmee": "Case douteuse, confirmée par une personne",
    "resultat_recupere": "Résultat manqué puis récupéré, sans seconde source",
    "resultat_manuel": "Résultat donné à la main par deux personnes nommées (article 67-15)",
    "appareil_perdu": "Appareil {device} perdu ({why})",
    "entrees_perdues": "Appareil {device} : {lost} entrées perdues pendant le tirage",
    "tirage_non_observe": "Tirage non observé par {device} (redémarrage)",
    "appareil_douteux": "Appareil {device} douteux pendant le tirage",
    "tirage_sans_resultat": "Le tirage est resté sans résultat",
    "annule_par_decision": "Coup annulé par {by}",
    # --- announcements ---
    "attestation": "Attestation « {what} » par {by} ({role})",
    "ouverture": "Table ouverte, minimum {minimum} centimes",
    "fermeture": "Table fermée",
    "fin_de_seance": "Fin de la séance {seance}",
    "limites": "Limites fixées, minimum {minimum} centimes",
    "options": "Options publiques fixées",
    "interruption": "Partie interrompue",
    "reprise": "Partie reprise",
    "dernier_coup": "Dernier coup de la séance",
    "coup_nul": "Coup nul",
    "coup_retenu": "Coup {coup} retenu : décision d'un chef nécessaire",
    "confirmer_la_case": "Case douteuse : à confirmer par le croupier",
    "choix_par_defaut": "Délai de choix écoulé : le choix du texte par défaut s'applique",
    # --- refusals of commands ---
    "argument_manquant": "Argument manquant ou impossible : {argument}",
    "role_non_habilite": "L'attestation « {what} » revient à : {roles}",
    "attestation_manquante": "Attestation manquante : {wanted}",
    "minimum_fige": "Le minimum et les maxima sont figés jusqu'à la séance du lendemain",
    "fermer_d_abord": "Fermer la table, attester la nouvelle encaisse, puis la rouvrir",
    "deja_ouverte": "La table est déjà ouverte",
    "deja_fermee": "La table est déjà fermée",
    "coup_en_cours": "Un coup est en cours : la table ne se ferme qu'entre deux coups",
    "mises_en_prison": "Des mises sont en prison : annoncer et jouer le dernier coup avant la fin de séance",
    "option_inconnue": "Option inconnue : {options} ; possibles : {allowed}",
    "pas_maintenant": "Pas dans la phase {phase}",
    "pas_interrompue": "La partie n'est pas interrompue",
    "commande_impossible": "Commande incomplète : arguments reçus {arguments}",
    "mise_inconnue": "Aucune mise douteuse {stake} ; décider par accepted ou refused",
    "pas_de_litige": "Aucun coup n'est retenu",
    "resultat_requis": "Un résultat possible de ce jeu est nécessaire",
    "deux_personnes": "Un résultat manuel exige une seconde personne, différente et nommée (article 67-15)",
    "mises_encore_ouvertes": "Les mises ne sont pas fermées : annoncer d'abord « Rien ne va plus »",
    "pas_de_coup": "Aucun tirage n'est en cours",
    # --- envelopes that are not obeyed ---
    "cmd_retained": "Une commande retenue par le broker n'est jamais exécutée",
    "cmd_unknown": "Commande inconnue : {name} ; possibles : {known}",
    "cmd_other_topic": "La commande {name} est arrivée sur cmd/{topic}",
    "cmd_wrong_table": "Commande pour la table {asked} ; cette table est {table}",
    "cmd_too_long": "Commande de {size} octets ; au plus {most}",
    "cmd_malformed": "Commande mal formée : {why}",
    "cmd_unsigned": "Commande sans signature ; le socket local seul s'en passe, pour un utilisateur qu'il connaît",
    "cmd_unknown_key": "Aucune clé {key} dans la configuration",
    "cmd_bad_signature": "La signature ne vérifie pas avec la clé {key}",
    "cmd_old_nonce": "Le nonce n'est pas celui de l'état courant : relire state.nonce",
    "cmd_no_clock": "Horloge non synchronisée : passer par le socket local ou porter args.nonce = state.nonce",
    "cmd_from_future": "Commande émise dans le futur ({issued}) : régler l'horloge de l'émetteur",
    "cmd_stale": "Commande périmée : émise à {issued}, valable {valid} s",
    "cmd_repeated": "Commande {id} déjà reçue : une nouvelle demande porte un nouvel id",
    "cmd_unauthorised": "La commande {name} revient à : {roles}",
    "cmd_second_missing": "args.second doit porter operator, key et sig d'une seconde personne : {why}",
    "cmd_busy": "Trop de commandes à la fois : recommencer dans un instant",
    # --- facts that change nothing ---
    "sans_objet": "Rien n'attend ce fait",
    "rien_a_retirer": "Aucune mise de ce joueur à cet endroit",
    "rien_a_confirmer": "Aucune lecture n'attend de confirmation",
    "choix_sans_offre": "Aucun choix n'est offert à ce joueur",
    "sens_memorise": "Sens de la manoeuvre mémorisé, aucun coup ne l'attend",
    "minuterie_sans_objet": "Minuterie déjà sans objet",
    "lecture_impossible": "Ce jeu ne connaît pas ce résultat",
    "resultat_confirme": "La source confirme le résultat",
    "hors_tirage": "Aucun tirage n'en dépend",
}


def text(code: str, **values: object) -> str:
    """The sentence for `code`; raises KeyError for a code that has none (a bug, found by the tests)."""
    return CATALOGUE[code].format(**values)
