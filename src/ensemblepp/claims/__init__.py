"""Claims of the paper, decided by datasets: one module for each family of statistics, and the ledger of all verdicts.

A claim and its decision rule are data (config/claims.yaml), fixed before the runs that decide them. The function of a statistic
takes the rule, the evidence that a protocol names and the study's dataset; it gives what was estimated, part by part. Whether
that is enough is decided in one place for all (`claims.verdicts`), after Holm's correction over a protocol's claims.
"""
