"""The configuration: typed models (one file per section), how they resolve to runs, and what is generated from them."""
