"""Where the answer of an instance flips as one number moves."""
