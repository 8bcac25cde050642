"""Bodies that attract each other."""

from benchmarks.npkernels._kernel import kernel


def nbody_inputs(rng, bodies, steps):
    position = rng.standard_normal((bodies, 3))
    velocity = rng.standard_normal((bodies, 3))
    mass = 20.0 * rng.random((bodies, 1)) / bodies
    return position, velocity, mass, steps, 0.01, 0.1


@kernel(
    nbody_inputs,
    size={"bodies": 100, "steps": 200},
    tiny={"bodies": 5, "steps": 2},
    writes=("position", "velocity"),
    rtol=1e-8,
)
def nbody(xp, position, velocity, mass, steps, dt, softening):
    """Leapfrog steps; the kinetic and the potential energy after each."""
    velocity -= xp.mean(mass * velocity, axis=0) / xp.mean(mass)
    force = acceleration(xp, position, mass, softening)
    kinetic, potential = [], []
    for _ in range(steps):
        velocity += force * dt / 2.0
        position += velocity * dt
        force = acceleration(xp, position, mass, softening)
        velocity += force * dt / 2.0
        kinetic.append(0.5 * xp.sum(mass * velocity**2))
        potential.append(attraction(xp, position, mass))
    return xp.stack(kinetic), xp.stack(potential)


def differences(position):
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    return x.T - x, y.T - y, z.T - z


def acceleration(xp, position, mass, softening):
    dx, dy, dz = differences(position)
    inverse = dx**2 + dy**2 + dz**2 + softening**2
    inverse[inverse > 0] = inverse[inverse > 0] ** -1.5
    return xp.hstack(((dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass))


def attraction(xp, position, mass):
    dx, dy, dz = differences(position)
    inverse = xp.sqrt(dx**2 + dy**2 + dz**2)
    inverse[inverse > 0] = 1.0 / inverse[inverse > 0]
    return -xp.sum(xp.triu(mass * mass.T * inverse, k=1))
