"""Ways to divide a layer over GPUs that do not all do the same: what each takes, in seconds and bytes."""
