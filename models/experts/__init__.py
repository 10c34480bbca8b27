"""Experts of a mixture-of-experts model: measured loads, where replicas may go, where they are, and their files."""
