"""`inferplan layer`: what one layer costs where."""
