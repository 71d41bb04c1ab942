"""Verifiers: complete and incomplete deciders behind one protocol. `catalogue.make` builds one by name."""
