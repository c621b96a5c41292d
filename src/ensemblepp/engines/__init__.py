"""What plays an agent in an environment. `step_by_step` plays anything; the others know a family, and are faster."""
