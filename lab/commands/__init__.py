"""The lab's subcommands that train a model and use it, a module each."""
