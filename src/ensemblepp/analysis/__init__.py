"""What datasets say: which runs to compare (`selection`), intervals (`statistics`), and the paper's formulas (`theory`)."""
