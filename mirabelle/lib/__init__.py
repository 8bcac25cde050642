"""NumPy's `lib`, as far as programs name it: `mb.lib.stride_tricks.sliding_window_view`."""

from mirabelle.lib import stride_tricks

__all__ = ["stride_tricks"]
