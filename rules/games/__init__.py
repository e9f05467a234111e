"""One module per game (a folder of that name when it would grow too long); each exports `GAMES` by game id."""
