"""`inferplan new`: an instance file written from a list of Kubernetes nodes, a model and what arrives."""
