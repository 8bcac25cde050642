"""Samplers of counts: Poisson, binomial, hypergeometric.

Where the mean is small, the number is found by walking up the distribution (inversion, one
word); elsewhere by transformed rejection (Hörmann 1993: PTRS, BTRS; Stadlober 1990: HRUA).
Acceptance compares with the probability itself in Loader's form, whose parts do not cancel, so
that it stays right for means of 1e15.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.random.blocks import fraction, open_fraction
from mirabelle.arraytypes.random.elementary import exp, log, log1p, log1p_rest
from mirabelle.arraytypes.random.lanes import choose, every, f8, floor, some, sqrt, u8
from mirabelle.arraytypes.random.philox import long_words

# Kernel source: what follows is also compiled by the backends (see `lanes`).

# A mean below this one is walked up to.
WALK = 10.0
# Walks end here at the latest, should rounding leave a rest of probability.
STEPS = 400.0
# The largest double that is a 64-bit integer.
LARGEST = 9223372036854774784.0


def stirling_rest(n: Any) -> Any:
    """log(n!) - (n + 1/2) log n + n - log(2π)/2 for n >= 1: Stirling's series, fitted to 2**-41."""
    w = 1.0 / (n + 0.5)
    p = 0.0001363127970596205 * w + -0.0003179989842648381
    p = p * w + 0.0009141946721182918
    p = p * w + -0.0010635532783368595
    p = p * w + 0.0016218015596459559
    p = p * w + 0.0009719787366034997
    p = p * w + 0.001859646460848982
    p = p * w + 0.006247478805642371
    p = p * w + 0.01805570226643888
    p = p * w + 0.04166666268731403
    return w * (p * w + 0.08333333336443748)


def log_factorial_rest(k: Any) -> Any:
    """log(k!) - k log k + k for whole k >= 0."""
    n = choose(k > 1.0, k, 1.0)
    return choose(k > 0.0, 0.5 * log(6.283185307179586 * n) + stirling_rest(n), 0.0)


def log_factorial(k: Any) -> Any:
    n = choose(k > 1.0, k, 1.0)
    return choose(k > 1.0, (n + 0.5) * log(n) - n + 0.9189385332046728 + stirling_rest(n), 0.0)


def deviance(x: Any, mean: Any) -> Any:
    """x log(x / mean) + mean - x, for x >= 0."""
    q = (x - mean) / mean
    return mean * (q * q + (1.0 + q) * log1p_rest(q))


# Poisson


def poisson_walk(u: Any, mean: Any) -> Any:
    """The count at which the probabilities of 0, 1, 2, ... add up to u."""
    p = exp(0.0 - mean)
    reached = p
    k = p * 0.0
    walking = u > reached
    while some(walking):
        k = choose(walking, k + 1.0, k)
        p = p * (mean / choose(walking, k, 1.0))
        reached = choose(walking, reached + p, reached)
        walking = (u > reached) & (k < STEPS)
    return k


def poisson_few(index: Any, attempt: Any, stream: Any, mean: Any) -> Any:
    u, _ = long_words(index, u8(0), stream)
    k = poisson_walk(open_fraction(u), mean)
    return k >= 0.0, k


def poisson_many(index: Any, attempt: Any, stream: Any, mean: Any) -> Any:
    u, v = long_words(index, attempt, stream)
    b = 0.931 + 2.53 * sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    x = fraction(u) - 0.5
    edge = 0.5 - choose(x < 0.0, 0.0 - x, x)
    edge = choose(edge > 0.0, edge, 1e-17)
    k = floor((2.0 * a / edge + b) * x + mean + 0.43)
    inside = (k >= 0.0) & (k <= LARGEST)
    k = choose(inside, k, 0.0)
    height = log(open_fraction(v) * inverse_alpha / (a / (edge * edge) + b))
    return inside & (height <= 0.0 - deviance(k, mean) - log_factorial_rest(k)), k


def poisson(index: Any, attempt: Any, stream: Any, mean: Any) -> Any:
    few = mean < WALK
    if every(few):
        return poisson_few(index, attempt, stream, mean)
    if not some(few):
        return poisson_many(index, attempt, stream, mean)
    _, k = poisson_few(index, attempt, stream, choose(few, mean, 0.0))
    accepted, n = poisson_many(index, attempt, stream, choose(few, WALK, mean))
    return few | accepted, choose(few, k, n)


# Binomial, for p <= 1/2


def binomial_walk(u: Any, n: Any, p: Any) -> Any:
    odds = p / (1.0 - p)
    f = exp(n * log1p(0.0 - p))
    reached = f
    k = f * 0.0
    walking = u > reached
    while some(walking):
        k = choose(walking, k + 1.0, k)
        f = f * (odds * ((n - k + 1.0) / choose(walking, k, 1.0)))
        reached = choose(walking, reached + f, reached)
        walking = (u > reached) & (k < STEPS) & (k < n)
    return k


def binomial_height(k: Any, n: Any, p: Any) -> Any:
    """log of the probability of k, up to what does not depend on k."""
    rest = deviance(k, n * p) + deviance(n - k, n * (1.0 - p))
    return 0.0 - rest - log_factorial_rest(k) - log_factorial_rest(n - k)


def binomial_rejected(u: Any, v: Any, n: Any, p: Any) -> Any:
    spread = sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * spread
    x = fraction(u) - 0.5
    edge = 0.5 - choose(x < 0.0, 0.0 - x, x)
    edge = choose(edge > 0.0, edge, 1e-17)
    k = floor((2.0 * a / edge + b) * x + n * p + 0.5)
    inside = (k >= 0.0) & (k <= n)
    mode = floor((n + 1.0) * p)
    k = choose(inside, k, mode)
    height = log(open_fraction(v) * alpha / (a / (edge * edge) + b))
    return inside & (height <= binomial_height(k, n, p) - binomial_height(mode, n, p)), k


def folded(trials: Any, chance: Any) -> Any:
    """n, p <= 1/2, and whether p is the chance of a failure."""
    turned = chance > 0.5
    return f8(trials), choose(turned, 1.0 - chance, chance), turned


def unfolded(k: Any, n: Any, turned: Any) -> Any:
    k = choose(turned, n - k, k)
    return choose(k < LARGEST, k, LARGEST)


def binomial_few(index: Any, attempt: Any, stream: Any, trials: Any, chance: Any) -> Any:
    n, p, turned = folded(trials, chance)
    u, _ = long_words(index, u8(0), stream)
    k = binomial_walk(open_fraction(u), n, p)
    return k >= 0.0, unfolded(k, n, turned)


def binomial_many(index: Any, attempt: Any, stream: Any, trials: Any, chance: Any) -> Any:
    n, p, turned = folded(trials, chance)
    u, v = long_words(index, attempt, stream)
    accepted, k = binomial_rejected(u, v, n, p)
    return accepted, unfolded(k, n, turned)


def binomial(index: Any, attempt: Any, stream: Any, trials: Any, chance: Any) -> Any:
    n, p, turned = folded(trials, chance)
    few = n * p < WALK
    if every(few):
        return binomial_few(index, attempt, stream, trials, chance)
    if not some(few):
        return binomial_many(index, attempt, stream, trials, chance)
    u, v = long_words(index, attempt, stream)
    k = binomial_walk(open_fraction(u), choose(few, n, 0.0), p)
    accepted, m = binomial_rejected(u, v, choose(few, 40.0, n), choose(few, 0.5, p))
    return few | accepted, unfolded(choose(few, k, m), n, turned)


# Hypergeometric: how many of the rarer kind (`few`, of `total`) are among `drawn` <= total / 2


def urn_walk(u: Any, few: Any, total: Any, drawn: Any) -> Any:
    """By inversion, for less than ten drawn."""
    many = total - few
    f = 1.0 + 0.0 * u
    for j in range(10):
        f = choose(drawn > j, f * (many - j) / choose(drawn > j, total - j, 1.0), f)
    reached = f
    k = f * 0.0
    walking = u > reached
    while some(walking):
        up = (few - k) * (drawn - k)
        k = choose(walking, k + 1.0, k)
        f = f * (up / choose(walking, k * (many - drawn + k), 1.0))
        reached = choose(walking, reached + f, reached)
        walking = (u > reached) & (k < drawn) & (k < few)
    return k


def urn_height(k: Any, few: Any, total: Any, drawn: Any) -> Any:
    """log of the probability of k, up to what does not depend on k."""
    inside = log_factorial(k) + log_factorial(few - k)
    return 0.0 - inside - log_factorial(drawn - k) - log_factorial(total - few - drawn + k)


def urn_rejected(u: Any, v: Any, few: Any, total: Any, drawn: Any) -> Any:
    p = few / total
    mean = drawn * p
    spread = sqrt((total - drawn) * drawn * p * (1.0 - p) / (total - 1.0) + 0.5)
    h = 1.7155277699214135 * spread + 0.8989161620588988
    mode = floor((drawn + 1.0) * (few + 1.0) / (total + 2.0))
    w = open_fraction(u)
    k = floor(mean + 0.5 + h * (fraction(v) - 0.5) / w)
    inside = (k >= 0.0) & (k <= few) & (k <= drawn)
    k = choose(inside, k, mode)
    bound = urn_height(k, few, total, drawn) - urn_height(mode, few, total, drawn)
    return inside & (2.0 * log(w) <= bound), k


def rarer(good: Any, bad: Any, sample: Any) -> Any:
    """How many there are of the rarer kind and of both, and how many are drawn or are left."""
    g, b, n = f8(good), f8(bad), f8(sample)
    total = g + b
    return choose(g < b, g, b), total, choose(n + n > total, total - n, n)


def of_the_good(k: Any, drawn: Any, good: Any, bad: Any, sample: Any) -> Any:
    """From how many of the rarer kind are drawn or left, how many good ones are drawn."""
    g, b, n = f8(good), f8(bad), f8(sample)
    k = choose(g > b, drawn - k, k)
    return choose(n + n > g + b, g - k, k)


def hypergeometric_few(index: Any, attempt: Any, stream: Any, good: Any, bad: Any, sample: Any) -> Any:
    few, total, drawn = rarer(good, bad, sample)
    u, _ = long_words(index, u8(0), stream)
    k = urn_walk(open_fraction(u), few, total, drawn)
    return k >= 0.0, of_the_good(k, drawn, good, bad, sample)


def hypergeometric_many(index: Any, attempt: Any, stream: Any, good: Any, bad: Any, sample: Any) -> Any:
    few, total, drawn = rarer(good, bad, sample)
    u, v = long_words(index, attempt, stream)
    accepted, k = urn_rejected(u, v, few, total, drawn)
    return accepted, of_the_good(k, drawn, good, bad, sample)


def hypergeometric(index: Any, attempt: Any, stream: Any, good: Any, bad: Any, sample: Any) -> Any:
    few, total, drawn = rarer(good, bad, sample)
    short = drawn < WALK
    if every(short):
        return hypergeometric_few(index, attempt, stream, good, bad, sample)
    if not some(short):
        return hypergeometric_many(index, attempt, stream, good, bad, sample)
    u, v = long_words(index, attempt, stream)
    k = urn_walk(
        open_fraction(u), choose(short, few, 1.0), choose(short, total, 2.0), choose(short, drawn, 0.0)
    )
    accepted, m = urn_rejected(
        u, v, choose(short, 50.0, few), choose(short, 100.0, total), choose(short, 20.0, drawn)
    )
    return short | accepted, of_the_good(choose(short, k, m), drawn, good, bad, sample)
