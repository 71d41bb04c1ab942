"""One module per file format: each reads files into arrays and gives a `Dataset`."""
