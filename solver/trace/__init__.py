"""What a request trace says of reuse: statistics, hit curves, and the exact replay of cache tiers."""
