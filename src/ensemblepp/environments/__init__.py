"""Environments: what gives decision sets, rewards and regret. One file per family; the interface is in `ensemblepp.bandit`."""
