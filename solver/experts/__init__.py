"""How many replicas each expert gets and which card holds each: placements, proven bounds, budgets and moves."""
