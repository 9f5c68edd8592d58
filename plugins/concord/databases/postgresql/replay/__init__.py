"""The replay of a publisher's transactions: entries become staged rows, and a procedure replays them."""
