"""The libraries beside us: their arrays from CuPy's without a copy, their values on the host."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_numpy(x: Any) -> np.ndarray:
    """The values of anybody's array on the host."""
    kind = type(x).__module__.partition(".")[0]
    if kind == "mirabelle":
        import mirabelle as mb

        return np.asarray(mb.to_numpy(x))
    if kind == "cupy":
        import cupy

        return cupy.asnumpy(x)
    if kind == "torch":
        return x.detach().cpu().numpy()
    return np.asarray(x)


def jax_on(card: Any) -> tuple[Any, Any]:
    """JAX with 64 bits, and a function that shows it a CuPy array."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    if card and not card.tiny and jax.default_backend() not in ("gpu", "cuda"):
        raise RuntimeError(f"JAX runs on {jax.default_backend()}, not on the card.")

    def show(x: Any) -> Any:
        try:
            return jnp.from_dlpack(x)
        except Exception:
            return jnp.asarray(to_numpy(x))

    return jax, show


def torch_on(card: Any) -> tuple[Any, Any]:
    """torch, and a function that shows it a CuPy array."""
    import torch

    if card and not torch.cuda.is_available():
        raise RuntimeError("torch sees no card.")

    def show(x: Any) -> Any:
        try:
            return torch.from_dlpack(x)
        except Exception:
            return torch.as_tensor(to_numpy(x), device="cuda" if card else "cpu")

    return torch, show


def agree(name: str, found: Any, expected: Any, rtol: float) -> None:
    """Refuse values that are not those expected."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{name}: shape {found.shape}, not {expected.shape}"
    scale = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0))
    if found.dtype.kind == "b" or expected.dtype.kind == "b":
        close = np.array_equal(found.astype(bool), expected.astype(bool))
    else:
        close = np.allclose(found, expected, rtol=rtol, atol=rtol * scale, equal_nan=True)
    assert close, f"{name}: values differ from NumPy's"
