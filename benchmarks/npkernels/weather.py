"""Two stencils of a weather model: diffusion in the plane, advection along the vertical."""

from benchmarks.npkernels._kernel import kernel


def hdiff_inputs(rng, ni, nj, nk):
    return rng.random((ni + 4, nj + 4, nk)), rng.random((ni, nj, nk))


@kernel(hdiff_inputs, size={"ni": 200, "nj": 200, "nk": 80}, tiny={"ni": 3, "nj": 2, "nk": 3}, jax=True)
def hdiff(xp, f, strength):
    """Horizontal diffusion of fourth order, with fluxes that never run up the gradient."""
    inner = f[2:-2, 2:-2]
    curved = 4.0 * f[1:-1, 1:-1] - (f[2:, 1:-1] + f[:-2, 1:-1] + f[1:-1, 2:] + f[1:-1, :-2])

    flux_i = curved[1:, 1:-1] - curved[:-1, 1:-1]
    slope_i = f[2:-1, 2:-2] - f[1:-2, 2:-2]
    flux_i = xp.where(flux_i * slope_i > 0.0, 0.0, flux_i)

    flux_j = curved[1:-1, 1:] - curved[1:-1, :-1]
    slope_j = f[2:-2, 2:-1] - f[2:-2, 1:-2]
    flux_j = xp.where(flux_j * slope_j > 0.0, 0.0, flux_j)

    return inner - strength * (flux_i[1:] - flux_i[:-1] + flux_j[:, 1:] - flux_j[:, :-1])


def vadv_inputs(rng, ni, nj, nk):
    tendency, u_stage, u_pos, u_tendency = (rng.random((ni, nj, nk)) for _ in range(4))
    return tendency, u_stage, rng.random((ni + 1, nj, nk)), u_pos, u_tendency, 3.0 / 20.0


@kernel(
    vadv_inputs,
    size={"ni": 60, "nj": 60, "nk": 160},
    tiny={"ni": 2, "nj": 3, "nk": 4},
    writes=("tendency",),
    statements=lambda ni, nj, nk: 9 * nk,
)
def vadv(xp, tendency, u, w, u_pos, u_tendency, per_step):
    """Vertical advection, half implicit: a tridiagonal solve up and down each column."""
    nk = u.shape[2]
    c = xp.empty_like(u)
    d = xp.empty_like(u)

    upper = 0.125 * (w[1:, :, 1] + w[:-1, :, 1])
    change = upper * (u[:, :, 0] - u[:, :, 1])
    known = per_step * u_pos[:, :, 0] + u_tendency[:, :, 0] + tendency[:, :, 0] + change
    scale = 1.0 / (per_step - upper)
    c[:, :, 0] = upper * scale
    d[:, :, 0] = known * scale

    for k in range(1, nk - 1):
        lower = -0.125 * (w[1:, :, k] + w[:-1, :, k])
        upper = 0.125 * (w[1:, :, k + 1] + w[:-1, :, k + 1])
        change = lower * (u[:, :, k] - u[:, :, k - 1]) + upper * (u[:, :, k] - u[:, :, k + 1])
        known = per_step * u_pos[:, :, k] + u_tendency[:, :, k] + tendency[:, :, k] + change
        scale = 1.0 / (per_step - lower - upper - c[:, :, k - 1] * lower)
        c[:, :, k] = upper * scale
        d[:, :, k] = (known - d[:, :, k - 1] * lower) * scale

    lower = -0.125 * (w[1:, :, -1] + w[:-1, :, -1])
    change = lower * (u[:, :, -1] - u[:, :, -2])
    known = per_step * u_pos[:, :, -1] + u_tendency[:, :, -1] + tendency[:, :, -1] + change
    value = (known - d[:, :, -2] * lower) / (per_step - lower - c[:, :, -2] * lower)
    tendency[:, :, -1] = per_step * (value - u_pos[:, :, -1])

    for k in range(nk - 2, -1, -1):
        value = d[:, :, k] - c[:, :, k] * value
        tendency[:, :, k] = per_step * (value - u_pos[:, :, k])
