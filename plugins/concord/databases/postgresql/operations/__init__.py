"""Users' transactions captured by triggers: their operations, their order, and for how long they are kept."""
