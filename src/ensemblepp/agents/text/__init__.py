"""Agents that train a language model: the heads of the neural agents on features that it makes of a post's tokens."""
