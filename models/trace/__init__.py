"""Request traces: formats, reading, and the accesses to blocks of context state."""
