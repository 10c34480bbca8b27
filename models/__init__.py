"""The planning problem: input files, units, checked data types and the errors they raise."""
