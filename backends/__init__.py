"""Backends: how and where arrays compute. Each folder only adds methods."""
