"""Language models, and the vectors that they make of posts."""
