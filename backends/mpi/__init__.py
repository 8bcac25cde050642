"""The MPI backend: `environment.py` says how this process was started, `finding.py` makes communicators."""
