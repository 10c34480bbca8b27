"""`inferplan trace`: what a trace of requests says of lengths, arrivals and reuse."""
