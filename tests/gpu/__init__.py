"""The test-suite on a real card: `python -m tests.gpu`, or `python tests/gpu`."""
