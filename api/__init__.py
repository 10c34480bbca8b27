"""How people reach the solver: the command line, and what it prints."""
