"""What `inferplan layer` is asked: what one layer costs where."""
