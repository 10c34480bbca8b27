"""Exit codes of the command line."""

SOLVED, FAULT, BAD, INFEASIBLE, STOPPED = 0, 1, 2, 3, 4
