"""`inferplan experts`: replicas of experts onto cards, from measured loads."""
