"""From a join block to a physical plan: rules, orders, kernels, groups, and plan text. No Spark."""
