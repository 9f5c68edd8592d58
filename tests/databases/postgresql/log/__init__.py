"""The publisher's log: its messages, and how they are cut. `tests/transactional` reads logs of real servers."""
