"""The command line: one file a command, all of them thin over the public API; only this part prints."""
