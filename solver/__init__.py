"""What follows from an instance: topology, physics, candidates, the master problem, plans and their verifier."""
