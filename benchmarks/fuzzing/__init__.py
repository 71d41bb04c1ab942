"""Parts of `fuzz.py`: random networks, oracles that share no code with the engine, cases and their judges."""
