"""The steps of the workflow between configuration and presentation: blocks, aggregation, fingerprints, publishing."""
