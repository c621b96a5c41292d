"""Where every random number comes from: the table of streams, and the laws of Ensemble++."""
