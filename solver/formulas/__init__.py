"""The physics: floats in, floats out, SI units. Source: "Distributed Inference", chapter 9."""
