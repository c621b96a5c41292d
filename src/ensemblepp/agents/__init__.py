"""Agents: what chooses. One file per agent; the interface is in `base`."""
