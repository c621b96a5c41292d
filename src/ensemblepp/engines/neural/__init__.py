"""Neural agents on pools, many rounds at a time: in PyTorch on any device, or compiled for one CPU core."""
