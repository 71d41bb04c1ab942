"""One module a file format: each reads files into arrays and gives a `Dataset`."""
