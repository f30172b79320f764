"""The `sparkshed` command. Each sub-command has a module of its own."""
