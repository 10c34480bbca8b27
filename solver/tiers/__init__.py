"""Context state kept for later: what comes back when, where it is kept, and what finding it saves."""
