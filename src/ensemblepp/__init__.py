"""Ensemble++: scalable exploration with a shared ensemble factor, and the study that checks the paper's claims."""

__version__ = "0.1.0"
