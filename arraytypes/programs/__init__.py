"""Compiled programs: functions of arrays captured as graphs, transformed, and run as one plan."""

from mirabelle.dispatch import loading

loading.complete(__name__)
