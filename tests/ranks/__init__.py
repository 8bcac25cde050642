"""The shared suite on several processes: see __main__.py."""
