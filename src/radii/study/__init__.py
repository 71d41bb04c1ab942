"""Studies: what is asked of many inputs, how it is run, and how finished work is found again."""
