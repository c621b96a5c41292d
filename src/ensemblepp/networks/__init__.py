"""Neural networks with parameters stacked over chains: one batched product serves every seed."""
