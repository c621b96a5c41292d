"""Linear bandits played whole: compiled for one CPU core, or all seeds at once in PyTorch."""
