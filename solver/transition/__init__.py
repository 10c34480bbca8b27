"""From one deployment to the next: steps in their order, bytes, what waits meanwhile, and failures."""
