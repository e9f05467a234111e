"""The law: pure functions over facts. No I/O, no clock, no randomness, no float for money (ARCHITECTURE.md).

Where to read what, in an order that needs nothing from further down:

    facts, decisions        what can happen at a table, and what the law answers
    bets, limits, money     what may be staked
    game                    what a game must say about itself; its effects
    table                   the one `step`: who hears a fact, and what becomes of a game's effects
    seance, stakes, series  opening and closing; chips placed, late, doubtful; colour chips and their value
    verdict, orders         is the coup valid, who is paid; what named persons may still change
    wheel, games/...        the draw, the bets and the money of each game, with the requirement behind each rule
    words, GLOSSARY.md      every French sentence, every French word
"""
