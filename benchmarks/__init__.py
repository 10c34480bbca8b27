"""How fast inferplan is, and how fast the back ends are that it could use: `python -m benchmarks`."""
