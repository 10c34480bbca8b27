"""The master problem as named rows, one file a decision family. Nothing here runs a solver."""
