"""Tables that publisher and subscriber keep differently: each operation is mapped on its way (S0-06)."""
