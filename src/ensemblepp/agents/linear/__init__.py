"""Agents for linear bandits. One file per agent, named after it; `chains` is what they share."""
