"""The queue of a plan over time: arrivals that come in bursts, stage after stage."""
