"""What one layer costs where. The attributes of what is found are the keys of the answer, in SI units."""
