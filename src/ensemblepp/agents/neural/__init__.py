"""Agents that learn with a neural network. One file per agent, named after it; `base` is what they share."""
