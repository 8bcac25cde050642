"""Compiled programs: functions of arrays captured as graphs, transformed, and run as one plan."""
