"""Where a request goes when its state may be in several places, and what is not known about them."""
