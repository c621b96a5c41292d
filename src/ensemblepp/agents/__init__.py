"""Agents: what chooses. One file per agent; their interface is in `ensemblepp.bandit`."""
