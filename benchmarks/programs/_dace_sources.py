# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false, reportGeneralTypeIssues=false
"""The kernels' text for DaCe, which reads it as its own language: annotations are sizes, not types."""

import dace
import numpy as np

N, NI, NJ, NK, NL, T = (dace.symbol(s) for s in ("N", "NI", "NJ", "NK", "NL", "T"))
B, H, W, K, CI, CO = (dace.symbol(s) for s in ("B", "H", "W", "K", "CI", "CO"))
SIDE, HALF, LEAST = (dace.symbol(s) for s in ("SIDE", "HALF", "LEAST"))
M, R, S = (dace.symbol(s, dtype=dace.int64) for s in ("M", "R", "S"))
f64, f32, c128, i64 = dace.float64, dace.float32, dace.complex128, dace.int64


@dace.program
def jacobi_1d(steps: i64, a: f64[N], b: f64[N]):
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) * 0.33333
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) * 0.33333


@dace.program
def jacobi_2d(steps: i64, a: f64[N, N], b: f64[N, N]):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])


@dace.program
def heat_3d(steps: i64, a: f64[N, N, N], b: f64[N, N, N]):
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = (
            a[1:-1, 1:-1, 1:-1]
            + 0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
        )
        a[1:-1, 1:-1, 1:-1] = (
            b[1:-1, 1:-1, 1:-1]
            + 0.125 * (b[2:, 1:-1, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[:-2, 1:-1, 1:-1])
            + 0.125 * (b[1:-1, 2:, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, :-2, 1:-1])
            + 0.125 * (b[1:-1, 1:-1, 2:] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, :-2])
        )


@dace.program
def fdtd_2d(ex: f64[NI, NJ], ey: f64[NI, NJ], hz: f64[NI, NJ], pulse: f64[T]):
    for t in range(T):
        ey[0, :] = pulse[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@dace.program
def hdiff(f: f64[NI + 4, NJ + 4, NK], strength: f64[NI, NJ, NK], out: f64[NI, NJ, NK]):
    curved = 4.0 * f[1:-1, 1:-1, :] - (f[2:, 1:-1, :] + f[:-2, 1:-1, :] + f[1:-1, 2:, :] + f[1:-1, :-2, :])

    run_i = curved[1:, 1:-1, :] - curved[:-1, 1:-1, :]
    flux_i = np.where(run_i * (f[2:-1, 2:-2, :] - f[1:-2, 2:-2, :]) > 0.0, 0.0, run_i)

    run_j = curved[1:-1, 1:, :] - curved[1:-1, :-1, :]
    flux_j = np.where(run_j * (f[2:-2, 2:-1, :] - f[2:-2, 1:-2, :]) > 0.0, 0.0, run_j)

    out[:] = f[2:-2, 2:-2, :] - strength * (
        flux_i[1:, :, :] - flux_i[:-1, :, :] + flux_j[:, 1:, :] - flux_j[:, :-1, :]
    )


@dace.program
def vadv(
    tendency: f64[NI, NJ, NK],
    u: f64[NI, NJ, NK],
    w: f64[NI + 1, NJ, NK],
    u_pos: f64[NI, NJ, NK],
    u_tendency: f64[NI, NJ, NK],
    per_step: f64,
):
    c = np.empty_like(u)
    d = np.empty_like(u)
    value = np.empty((NI, NJ), dtype=np.float64)

    upper_0 = 0.125 * (w[1:, :, 1] + w[:-1, :, 1])
    known_0 = per_step * u_pos[:, :, 0] + u_tendency[:, :, 0] + tendency[:, :, 0] + upper_0 * (
        u[:, :, 0] - u[:, :, 1]
    )  # fmt: skip
    scale_0 = 1.0 / (per_step - upper_0)
    c[:, :, 0] = upper_0 * scale_0
    d[:, :, 0] = known_0 * scale_0

    for k in range(1, NK - 1):
        lower = -0.125 * (w[1:, :, k] + w[:-1, :, k])
        upper = 0.125 * (w[1:, :, k + 1] + w[:-1, :, k + 1])
        change = lower * (u[:, :, k] - u[:, :, k - 1]) + upper * (u[:, :, k] - u[:, :, k + 1])
        known = per_step * u_pos[:, :, k] + u_tendency[:, :, k] + tendency[:, :, k] + change
        scale = 1.0 / (per_step - lower - upper - c[:, :, k - 1] * lower)
        c[:, :, k] = upper * scale
        d[:, :, k] = (known - d[:, :, k - 1] * lower) * scale

    lower_n = -0.125 * (w[1:, :, NK - 1] + w[:-1, :, NK - 1])
    change_n = lower_n * (u[:, :, NK - 1] - u[:, :, NK - 2])
    known_n = per_step * u_pos[:, :, NK - 1] + u_tendency[:, :, NK - 1] + tendency[:, :, NK - 1] + change_n
    value[:] = (known_n - d[:, :, NK - 2] * lower_n) / (per_step - lower_n - c[:, :, NK - 2] * lower_n)
    tendency[:, :, NK - 1] = per_step * (value - u_pos[:, :, NK - 1])

    for k in range(NK - 2, -1, -1):
        value[:] = d[:, :, k] - c[:, :, k] * value
        tendency[:, :, k] = per_step * (value - u_pos[:, :, k])


@dace.program
def divergence_source(u: f64[NI, NJ], v: f64[NI, NJ], out: f64[NI - 2, NJ - 2], rho: f64, dt: f64, h: f64):
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * h)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * h)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * h)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
    out[:] = rho * ((ux + vy) / dt - ux * ux - 2 * uy * vx - vy * vy)


@dace.program
def moved(
    f: f64[NI, NJ], u: f64[NI, NJ], v: f64[NI, NJ], out: f64[NI - 2, NJ - 2], courant: f64, diffusion: f64
):
    out[:] = (
        f[1:-1, 1:-1]
        - courant * u[1:-1, 1:-1] * (f[1:-1, 1:-1] - f[1:-1, :-2])
        - courant * v[1:-1, 1:-1] * (f[1:-1, 1:-1] - f[:-2, 1:-1])
        + diffusion * (f[1:-1, 2:] - 2 * f[1:-1, 1:-1] + f[1:-1, :-2])
        + diffusion * (f[2:, 1:-1] - 2 * f[1:-1, 1:-1] + f[:-2, 1:-1])
    )


@dace.program
def cavity_flow(
    steps: i64,
    sweeps: i64,
    h: f64,
    dt: f64,
    rho: f64,
    nu: f64,
    u: f64[N, N],
    v: f64[N, N],
    p: f64[N, N],
    b: f64[N, N],
):
    # (Two loops over one name, `_`, never end.)
    un = np.empty_like(u)
    vn = np.empty_like(v)
    pn = np.empty_like(p)
    inner_u = np.empty((N - 2, N - 2), dtype=np.float64)
    inner_v = np.empty((N - 2, N - 2), dtype=np.float64)
    inner_b = np.empty((N - 2, N - 2), dtype=np.float64)
    for _s in range(steps):
        un[:] = u
        vn[:] = v
        divergence_source(u, v, inner_b, rho, dt, h)
        b[1:-1, 1:-1] = inner_b
        for _k in range(sweeps):
            pn[:] = p
            p[1:-1, 1:-1] = 0.25 * (
                pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1] - h * h * b[1:-1, 1:-1]
            )
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        moved(un, un, vn, inner_u, dt / h, nu * dt / (h * h))
        moved(vn, un, vn, inner_v, dt / h, nu * dt / (h * h))
        u[1:-1, 1:-1] = inner_u - dt / (2 * rho * h) * (p[1:-1, 2:] - p[1:-1, :-2])
        v[1:-1, 1:-1] = inner_v - dt / (2 * rho * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


@dace.program
def channel_flow(
    sweeps: i64,
    tolerance: f64,
    h: f64,
    dt: f64,
    rho: f64,
    nu: f64,
    force: f64,
    u: f64[N, N],
    v: f64[N, N],
    p: f64[N, N],
):
    wide_u = np.empty((N, N + 2), dtype=np.float64)
    wide_v = np.empty((N, N + 2), dtype=np.float64)
    wide = np.empty((N, N + 2), dtype=np.float64)
    b = np.empty((N - 2, N), dtype=np.float64)
    inner_u = np.empty((N - 2, N), dtype=np.float64)
    inner_v = np.empty((N - 2, N), dtype=np.float64)
    above = 1.0
    while above > 0.0:
        before = np.sum(u)
        wide_u[:, 1:-1] = u
        wide_u[:, 0] = u[:, -1]
        wide_u[:, -1] = u[:, 0]
        wide_v[:, 1:-1] = v
        wide_v[:, 0] = v[:, -1]
        wide_v[:, -1] = v[:, 0]
        divergence_source(wide_u, wide_v, b, rho, dt, h)
        for _ in range(sweeps):
            wide[:, 1:-1] = p
            wide[:, 0] = p[:, -1]
            wide[:, -1] = p[:, 0]
            p[1:-1, :] = 0.25 * (
                wide[1:-1, 2:] + wide[1:-1, :-2] + wide[2:, 1:-1] + wide[:-2, 1:-1] - h * h * b
            )
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        wide[:, 1:-1] = p
        wide[:, 0] = p[:, -1]
        wide[:, -1] = p[:, 0]
        moved(wide_u, wide_u, wide_v, inner_u, dt / h, nu * dt / (h * h))
        moved(wide_v, wide_u, wide_v, inner_v, dt / h, nu * dt / (h * h))
        u[1:-1, :] = inner_u - dt / (2 * rho * h) * (wide[1:-1, 2:] - wide[1:-1, :-2]) + force * dt
        v[1:-1, :] = inner_v - dt / (2 * rho * h) * (wide[2:, 1:-1] - wide[:-2, 1:-1])
        after = np.sum(u)
        above = (after - before) / after - tolerance


@dace.program
def adi(steps: i64, u: f64[N, N]):
    v = np.zeros_like(u)
    p = np.zeros((N - 2, N), dtype=np.float64)
    q = np.zeros((N - 2, N), dtype=np.float64)
    across = (1.0 * N * N) / steps
    along = 2.0 * across
    along_2 = along / 2
    across_2 = across / 2
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[:, 0] = 0.0
        q[:, 0] = 1.0
        for j in range(1, N - 1):
            pivot_1 = 1.0 + 2.0 * along_2 - along_2 * p[:, j - 1]
            p[:, j] = along_2 / pivot_1
            q[:, j] = (
                across_2 * (u[j, :-2] + u[j, 2:]) + (1.0 - 2.0 * across_2) * u[j, 1:-1] + along_2 * q[:, j - 1]
            ) / pivot_1
        v[-1, 1:-1] = 1.0
        for j in range(N - 2, 0, -1):
            v[j, 1:-1] = p[:, j] * v[j + 1, 1:-1] + q[:, j]

        u[1:-1, 0] = 1.0
        p[:, 0] = 0.0
        q[:, 0] = 1.0
        for j in range(1, N - 1):
            pivot_2 = 1.0 + 2.0 * across_2 - across_2 * p[:, j - 1]
            p[:, j] = across_2 / pivot_2
            q[:, j] = (
                along_2 * (v[:-2, j] + v[2:, j]) + (1.0 - 2.0 * along_2) * v[1:-1, j] + across_2 * q[:, j - 1]
            ) / pivot_2
        u[1:-1, -1] = 1.0
        for j in range(N - 2, 0, -1):
            u[1:-1, j] = p[:, j] * u[1:-1, j + 1] + q[:, j]


@dace.program
def deriche(image: f64[NI, NJ], alpha: f64, out: f64[NI, NJ]):
    e = np.exp(-alpha)
    k = (1.0 - e) * (1.0 - e) / (1.0 + 2.0 * alpha * e - e * e)
    before = k * e * (alpha - 1.0)
    after = k * e * (alpha + 1.0)
    later = -k * e * e
    once = 2.0 * e
    twice = -e * e
    down = np.empty_like(image)
    up = np.empty_like(image)
    rows = np.empty_like(image)

    down[0, :] = k * image[0, :]
    down[1, :] = k * image[1, :] + before * image[0, :] + once * down[0, :]
    for i in range(2, NI):
        down[i, :] = k * image[i, :] + before * image[i - 1, :] + once * down[i - 1, :] + twice * down[i - 2, :]
    up[NI - 1, :] = 0.0
    up[NI - 2, :] = after * image[NI - 1, :]
    for i in range(NI - 3, -1, -1):
        up[i, :] = (
            after * image[i + 1, :] + later * image[i + 2, :] + once * up[i + 1, :] + twice * up[i + 2, :]
        )
    rows[:] = down + up

    down[:, 0] = k * rows[:, 0]
    down[:, 1] = k * rows[:, 1] + before * rows[:, 0] + once * down[:, 0]
    for j in range(2, NJ):
        down[:, j] = k * rows[:, j] + before * rows[:, j - 1] + once * down[:, j - 1] + twice * down[:, j - 2]
    up[:, NJ - 1] = 0.0
    up[:, NJ - 2] = after * rows[:, NJ - 1]
    for j in range(NJ - 3, -1, -1):
        up[:, j] = after * rows[:, j + 1] + later * rows[:, j + 2] + once * up[:, j + 1] + twice * up[:, j + 2]
    out[:] = down + up


@dace.program
def stockham_fft(x: c128[R * M], out: c128[R * M], rests: i64[S], dones: i64[S]):
    now = np.empty((R * M,), dtype=np.complex128)
    then = np.empty((R * M,), dtype=np.complex128)
    small = np.empty((R, R), dtype=np.complex128)
    now[:] = x
    for a, b in dace.map[0:R, 0:R]:
        angle = 2.0 * np.pi * a * b / R
        small[a, b] = np.cos(angle) - 1j * np.sin(angle)
    for s in range(S):
        rest = rests[s]
        done = dones[s]
        then[:] = 0
        for a, m, e in dace.map[0:R, 0:rest, 0:done]:
            turned = 2.0 * np.pi * a * m / (rest * R)
            turn = np.cos(turned) - 1j * np.sin(turned)
            for b in range(R):
                then[m * (R * done) + a * done + e] = (
                    then[m * (R * done) + a * done + e] + turn * small[a, b] * now[b * M + m * done + e]
                )
        now[:] = then
    out[:] = now


@dace.program
def acceleration(position: f64[N, 3], mass: f64[N], force: f64[N, 3], softening: f64):
    dx = np.subtract.outer(position[:, 0], position[:, 0])
    dy = np.subtract.outer(position[:, 1], position[:, 1])
    dz = np.subtract.outer(position[:, 2], position[:, 2])
    inverse = (dx * dx + dy * dy + dz * dz + softening * softening) ** (-1.5)
    force[:, 0] = -((dx * inverse) @ mass)
    force[:, 1] = -((dy * inverse) @ mass)
    force[:, 2] = -((dz * inverse) @ mass)


@dace.program
def nbody(
    position: f64[N, 3],
    velocity: f64[N, 3],
    mass: f64[N],
    dt: f64,
    softening: f64,
    kinetic: f64[T],
    potential: f64[T],
):
    total = np.sum(mass)
    drift = mass @ velocity
    for i, a in dace.map[0:N, 0:3]:
        velocity[i, a] = velocity[i, a] - drift[a] / total
    force = np.empty_like(position)
    acceleration(position, mass, force, softening)
    for t in range(T):
        velocity += force * dt / 2.0
        position += velocity * dt
        acceleration(position, mass, force, softening)
        velocity += force * dt / 2.0
        kinetic[t] = 0.5 * np.sum(mass @ (velocity * velocity))
        dx = np.subtract.outer(position[:, 0], position[:, 0])
        dy = np.subtract.outer(position[:, 1], position[:, 1])
        dz = np.subtract.outer(position[:, 2], position[:, 2])
        distance = np.sqrt(dx * dx + dy * dy + dz * dz)
        inverse = np.where(distance > 0.0, 1.0 / np.maximum(distance, 1e-300), 0.0)
        # The sum over each pair, twice: the matrix is symmetric and its diagonal 0.
        potential[t] = -0.5 * np.sum(np.multiply.outer(mass, mass) * inverse)


@dace.program
def mandelbrot1(most: i64, c: c128[NI, NJ], z: c128[NI, NJ], escaped: i64[NI, NJ]):
    step = np.zeros_like(escaped)
    for _ in range(most):
        inside = np.abs(z) < 2.0
        escaped[:] = np.where(inside, step, escaped)
        step += 1
        z[:] = np.where(inside, z * z + c, z)
    escaped[:] = np.where(escaped == step - 1, 0, escaped)


@dace.program
def convolution(
    x: f32[B, H, W, CI], w: f32[K, K, CI, CO], bias: f32[CO], out: f32[B, H - K + 1, W - K + 1, CO]
):
    for b, i, j, o in dace.map[0:B, 0 : H - K + 1, 0 : W - K + 1, 0:CO]:
        out[b, i, j, o] = bias[o]
    # (As sequential loops inside of the map above it computes something else.)
    for b, i, j, o, di, dj, a in dace.map[0:B, 0 : H - K + 1, 0 : W - K + 1, 0:CO, 0:K, 0:K, 0:CI]:
        out[b, i, j, o] += x[b, i + di, j + dj, a] * w[di, dj, a, o]


@dace.program
def conv2d(x: f32[B, H, W, CI], w: f32[K, K, CI, CO], bias: f32[CO], out: f32[B, H - K + 1, W - K + 1, CO]):
    convolution(x, w, bias, out)


@dace.program
def pooled(x: f32[B, H, W, CI], out: f32[B, NI, NJ, CI]):
    for b, i, j, a in dace.map[0:B, 0:NI, 0:NJ, 0:CI]:
        out[b, i, j, a] = max(
            max(x[b, 2 * i, 2 * j, a], x[b, 2 * i, 2 * j + 1, a]),
            max(x[b, 2 * i + 1, 2 * j, a], x[b, 2 * i + 1, 2 * j + 1, a]),
        )


@dace.program
def lenet(
    x: f32[B, SIDE, SIDE, 1],
    w1: f32[5, 5, 1, 6],
    b1: f32[6],
    w2: f32[5, 5, 6, 16],
    b2: f32[16],
    w3: f32[16 * LEAST * LEAST, 120],
    b3: f32[120],
    w4: f32[120, 84],
    b4: f32[84],
    w5: f32[84, 10],
    b5: f32[10],
    out: f32[B, 10],
):
    # Sizes are symbols of their own: two ways to write a quotient are two sizes to DaCe, and the H of a
    # function that is called must not be another size here.
    seen_1 = np.empty((B, SIDE - 4, SIDE - 4, 6), dtype=np.float32)
    convolution(x, w1, b1, seen_1)
    active_1 = np.maximum(seen_1, 0)
    pool_1 = np.empty((B, HALF, HALF, 6), dtype=np.float32)
    pooled(active_1, pool_1)
    seen_2 = np.empty((B, HALF - 4, HALF - 4, 16), dtype=np.float32)
    convolution(pool_1, w2, b2, seen_2)
    active_2 = np.maximum(seen_2, 0)
    pool_2 = np.empty((B, LEAST, LEAST, 16), dtype=np.float32)
    pooled(active_2, pool_2)
    flat = np.reshape(pool_2, (B, 16 * LEAST * LEAST))
    dense_1 = np.maximum(flat @ w3 + b3, 0)
    dense_2 = np.maximum(dense_1 @ w4 + b4, 0)
    out[:] = dense_2 @ w5 + b5


@dace.program
def softmax(x: f32[NI, NJ, NK, NL], out: f32[NI, NJ, NK, NL]):
    highest = np.max(x, axis=-1)
    raised = np.exp(x - highest[:, :, :, np.newaxis])
    total = np.sum(raised, axis=-1)
    out[:] = raised / total[:, :, :, np.newaxis]


@dace.program
def mlp(
    x: f32[B, CI],
    w1: f32[CI, H],
    b1: f32[H],
    w2: f32[H, H],
    b2: f32[H],
    w3: f32[H, CO],
    b3: f32[CO],
    out: f32[B, CO],
):
    first = np.maximum(x @ w1 + b1, 0)
    second = np.maximum(first @ w2 + b2, 0)
    third = second @ w3 + b3
    highest = np.max(third, axis=-1)
    raised = np.exp(third - highest[:, np.newaxis])
    total = np.sum(raised, axis=-1)
    out[:] = raised / total[:, np.newaxis]
