"""An entry's operations at the subscriber, by one and by set. `tests/transactional` replays them under kills."""
