"""The Navier-Stokes equations in the plane: a driven cavity and a periodic channel."""

from benchmarks.npkernels._kernel import kernel


def cavity_inputs(rng, n, steps, sweeps):
    return n, steps, sweeps, 0.001, 1.0, 0.1


@kernel(
    cavity_inputs,
    size={"n": 61, "steps": 50, "sweeps": 50},
    tiny={"n": 6, "steps": 2, "sweeps": 2},
    statements=lambda n, steps, sweeps: steps * (2 * 5 + sweeps * 6 + 10),
)
def cavity_flow(xp, n, steps, sweeps, dt, rho, nu):
    """A square cavity whose lid moves; velocities and pressure after some steps."""
    h = 2.0 / (n - 1)
    u, v, p, b = (xp.zeros((n, n)) for _ in range(4))
    for _ in range(steps):
        un, vn = u.copy(), v.copy()
        b[1:-1, 1:-1] = divergence_source(u, v, rho, dt, h)
        for _ in range(sweeps):
            pn = p.copy()
            p[1:-1, 1:-1] = 0.25 * (
                pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1] - h * h * b[1:-1, 1:-1]
            )
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        pressure_x = dt / (2 * rho * h) * (p[1:-1, 2:] - p[1:-1, :-2])
        pressure_y = dt / (2 * rho * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
        u[1:-1, 1:-1] = moved(un, un, vn, dt / h, nu * dt / h**2) - pressure_x
        v[1:-1, 1:-1] = moved(vn, un, vn, dt / h, nu * dt / h**2) - pressure_y
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0
    return u, v, p


def divergence_source(u, v, rho, dt, h):
    """What pressure must undo, at the inner points."""
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * h)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * h)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * h)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
    return rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)


def moved(f, u, v, courant, diffusion):
    """Advection (upwind) and diffusion of `f`, at the inner points."""
    inner = f[1:-1, 1:-1]
    return (
        inner
        - courant * u[1:-1, 1:-1] * (inner - f[1:-1, :-2])
        - courant * v[1:-1, 1:-1] * (inner - f[:-2, 1:-1])
        + diffusion * (f[1:-1, 2:] - 2 * inner + f[1:-1, :-2])
        + diffusion * (f[2:, 1:-1] - 2 * inner + f[:-2, 1:-1])
    )


def channel_inputs(rng, n, sweeps, tolerance):
    return n, sweeps, tolerance, 0.2 / (n - 1) ** 2, 1.0, 0.1, 1.0


@kernel(
    channel_inputs,
    size={"n": 61, "sweeps": 10, "tolerance": 0.001},
    tiny={"n": 5, "sweeps": 2, "tolerance": 0.3},
    rtol=1e-8,
)
def channel_flow(xp, n, sweeps, tolerance, dt, rho, nu, force):
    """A channel, periodic along the flow, until the flow hardly changes any more."""
    h = 2.0 / (n - 1)
    u, v, p = (xp.zeros((n, n)) for _ in range(3))
    change = 1.0
    while change > tolerance:
        before = u.sum()
        wide_u, wide_v = wrapped(xp, u), wrapped(xp, v)
        b = divergence_source(wide_u, wide_v, rho, dt, h)
        for _ in range(sweeps):
            wide = wrapped(xp, p)
            p[1:-1] = 0.25 * (wide[1:-1, 2:] + wide[1:-1, :-2] + wide[2:, 1:-1] + wide[:-2, 1:-1] - h * h * b)
            p[-1] = p[-2]
            p[0] = p[1]
        wide = wrapped(xp, p)
        pressure_x = dt / (2 * rho * h) * (wide[1:-1, 2:] - wide[1:-1, :-2])
        pressure_y = dt / (2 * rho * h) * (wide[2:, 1:-1] - wide[:-2, 1:-1])
        u[1:-1] = moved(wide_u, wide_u, wide_v, dt / h, nu * dt / h**2) - pressure_x + force * dt
        v[1:-1] = moved(wide_v, wide_u, wide_v, dt / h, nu * dt / h**2) - pressure_y
        after = u.sum()
        change = float((after - before) / after)
    return u, v, p


def wrapped(xp, f):
    """`f` with its last column before the first and its first after the last."""
    return xp.concatenate([f[:, -1:], f, f[:, :1]], axis=1)
