"""What arrays can do beyond the core verbs, by chapter. Composed of verbs and library routines."""
