"""Derives the coefficients of internal/kernel/gen/vector and gen/attend: relative minimax fits
by linear least squares with Lawson's reweighting, in float64.

Run: python experiments/fit_vector.py
"""
import math

import numpy as np


def erfcx(x):
    """exp(x^2) erfc(x) for x >= 0; from 3 on Laplace's continued fraction."""
    if x < 3:
        return math.exp(x * x) * math.erfc(x)
    f = 0.0
    for k in range(200, 0, -1):
        f = (k / 2) / (x + f)
    return 1 / (math.sqrt(math.pi) * (x + f))


def lawson(columns, target, iterations=400):
    """Minimax solution of columns @ c = target (both scaled by the weight of the error)."""
    w = np.ones(len(target)) / len(target)
    best, best_error = None, np.inf
    for _ in range(iterations):
        s = np.sqrt(w)
        c, *_ = np.linalg.lstsq(columns * s[:, None], target * s, rcond=1e-17)
        e = np.abs(columns @ c - target)
        if e.max() < best_error:
            best, best_error = c, e.max()
        w = w * e
        w /= w.sum()
    return best, best_error


def fit_exp(degree):
    """exp(r) = 1 + r + r^2 (c0 + c1 r + ...) on |r| <= ln2/2."""
    h = math.log(2) / 2 * 1.001
    r = h * np.cos(np.linspace(0, math.pi, 801))
    r = r[np.abs(r) > 1e-3]
    y = np.exp(r)
    cols = np.stack([r ** (k + 2) / y for k in range(degree - 1)], 1)
    # expm1(r)-r by its series, to keep the digits that the difference loses.
    t = sum(r**k / math.factorial(k) for k in range(2, 18))
    return lawson(cols, t / y)


def fit_exp2(degree):
    """2^r = c0 + c1 r + ... on [0, 1]."""
    r = 0.5 - 0.5 * np.cos(np.linspace(0, math.pi, 2001))
    y = 2**r
    return lawson(np.stack([r**k / y for k in range(degree + 1)], 1), np.ones_like(r), 2000)


def fit_log2(degree):
    """log2(1+r) = c1 r + c2 r^2 + ... on [0, 1], by its absolute error."""
    r = (0.5 - 0.5 * np.cos(np.linspace(0, math.pi, 2001)))[1:]
    return lawson(np.stack([r**k for k in range(1, degree + 1)], 1), np.log2(1 + r), 2000)


def fit_tail(p, q, top=14.5):
    """R(a) = exp(a^2/2) (1-Phi(a)) = P(a)/Q(a) on [0, top], Q(0) = 1."""
    a = top * (0.5 - 0.5 * np.cos(np.linspace(0, math.pi, 3001))) ** 1.5
    y = np.array([0.5 * erfcx(v / math.sqrt(2)) for v in a])
    den = np.ones_like(a)
    best, err = None, np.inf
    w = np.ones_like(a) / len(a)
    for _ in range(600):
        # (P - y Q)/(y den) = relative error * Q/den
        cols = np.concatenate([np.stack([a**k / (y * den) for k in range(p + 1)], 1),
                               np.stack([-(a**k) / den for k in range(1, q + 1)], 1)], 1)
        scale = np.abs(cols).max(0)
        s = np.sqrt(w)
        c, *_ = np.linalg.lstsq(cols / scale * s[:, None], s / den, rcond=1e-18)
        c = c / scale
        P = np.polyval(c[: p + 1][::-1], a)
        Q = np.polyval(np.concatenate([[1], c[p + 1 :]])[::-1], a)
        e = np.abs(P / Q / y - 1)
        if e.max() < err:
            best, err = c, e.max()
        den = Q
        w = w * (e + 1e-3*e.max()); w /= w.sum()
    return best, err, a, y


def tail_nodes(top):
    """Points on [0, top] and R there."""
    a = top * (0.5 - 0.5 * np.cos(np.linspace(0, math.pi, 3001))) ** 1.2
    return a, np.array([0.5 * erfcx(v / math.sqrt(2)) for v in a])


def beyond(a, from_=5):
    """Weight of an error: less where values are too small to matter."""
    return 1 / (1 + np.maximum(0, a - from_) ** 2)


def fit_log_tail(degree, top=12.75):
    """log2(1-Phi(a)) = c0 + c1 a + ... on [0, top], by its absolute error; returns the relative ones of 1-Phi up to 5 and in all."""
    a, R = tail_nodes(top)
    y = np.log2(R) - a * a / (2 * math.log(2))
    w = beyond(a)
    c, _ = lawson(np.stack([a**k * w for k in range(degree + 1)], 1), y * w, 1500)
    e = np.abs(2 ** (np.polyval(c.astype(np.float32).astype(np.float64)[::-1], a) - y) - 1)
    return c, e[a < 5].max(), e.max()


def fit_mills(degree, top=12.75):
    """1 - a phi(a)/(1-Phi(a)) = 1 + c1 a + ... on [0, top]; returns the errors of its product with 1-Phi: absolute, relative up to 5."""
    a, R = tail_nodes(top)
    m = 1 - a / math.sqrt(2 * math.pi) / R
    w = beyond(a) / np.maximum(np.abs(m), 0.5)
    c, _ = lawson(np.stack([a**k * w for k in range(1, degree + 1)], 1), (m - 1) * w, 1500)
    e = np.abs(np.polyval(np.concatenate([[1], c.astype(np.float32).astype(np.float64)])[::-1], a) - m)
    return c, (e * R * np.exp(-a * a / 2)).max(), (e / np.maximum(np.abs(m), 0.5))[a < 5].max()


def fit_asin(degree):
    """asin(s) = s + s z (c0 + c1 z + ...) for z = s^2 in [0, 1/4]."""
    z = 0.25 * (0.5 - 0.5 * np.cos(np.linspace(0, math.pi, 2001)))[1:]
    s = np.sqrt(z)
    ratio = np.arcsin(s) / s
    # asin(s)/s - 1 by its series, to keep the digits that the difference loses.
    t, c = np.zeros_like(z), 1.0
    for k in range(1, 40):
        c *= (2 * k - 1) / (2 * k)
        t += c / (2 * k + 1) * z**k
    cols = np.stack([z ** (k + 1) / ratio for k in range(degree + 1)], 1)
    return lawson(cols, t / ratio)


def fit_sin(degree):
    """sin(x) = x + x z (c0 + c1 z + ...) for z = x^2, |x| <= pi/2, error absolute."""
    x = math.pi / 2 * np.sin(np.linspace(0, math.pi / 2, 2001))[1:]
    cols = np.stack([x ** (2 * k + 3) for k in range(degree + 1)], 1)
    # sin(x)-x by its series, to keep the digits that the difference loses.
    t = sum((-1) ** k * x ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(1, 14))
    return lawson(cols, t)


def round_sin(c):
    """Float32 coefficients near c with which no sine is beyond 1 and that of pi/2 is 1."""
    f = np.float32
    top = f(math.pi / 2)
    x = np.concatenate([top - np.arange(40000) * np.spacing(f(1)), top * np.sqrt(np.linspace(0, 1, 60001))]).astype(f)
    z, exact = x * x, np.sin(x.astype(np.float64))

    def sine(c):  # sums of products rounded once
        p = np.full_like(x, c[-1])
        for k in c[-2::-1]:
            p = f(p.astype(np.float64) * z + k)
        p *= z
        return f(p.astype(np.float64) * x + x)

    best, error = None, np.inf
    for a in range(-3, 4):
        for b in range(-10, 11, 2):
            d = [f(v) for v in c]
            d[0] += a * np.spacing(d[0])
            d[1] += b * np.spacing(d[1])
            y = sine([float(v) for v in d])
            e = np.abs(y - exact).max()
            if y.max() == 1 and y[0] == 1 and e < error:
                best, error = d, e
    return best, error


if __name__ == "__main__":
    c, e = round_sin(fit_sin(3)[0])
    print("sin degree 3 rounded, error %.2e" % e, [float(v) for v in c])
    for d in (2, 3, 4):
        c, e = fit_sin(d)
        print("sin degree", d, "error %.2e" % e, [float(np.float32(v)) for v in c])
    for d in (3, 4, 5):
        c, e = fit_asin(d)
        print("asin degree", d, "error %.2e" % e, [float(np.float32(v)) for v in c])
    for d in (5, 6, 7):
        c, e = fit_exp(d)
        print("exp degree", d, "error %.2e" % e, [float(np.float32(v)) for v in c])
    for d in (3, 4, 5):
        c, e = fit_exp2(d)
        print("exp2 degree", d, "error %.2e" % e, [float(np.float32(v)) for v in c])
    for d in (6, 7, 8):
        c, e = fit_log2(d)
        print("log2 degree", d, "error %.2e" % e, [float(np.float32(v)) for v in c])
    for d in (7, 8):
        c, e, all_ = fit_log_tail(d)
        print("log tail degree", d, "error to 5 %.2e, in all %.2e" % (e, all_), [float(np.float32(v)) for v in c])
    for d in (7, 8):
        c, e, relative = fit_mills(d)
        print("mills degree", d, "error of the slope %.2e, relative to 5 %.2e" % (e, relative), [float(np.float32(v)) for v in c])
    for p, q in ((3, 4), (4, 5), (4, 4), (5, 6)):
        c, e, a, y = fit_tail(p, q)
        c32 = c.astype(np.float32).astype(np.float64)
        P = np.polyval(c32[: p + 1][::-1], a)
        Q = np.polyval(np.concatenate([[1], c32[p + 1 :]])[::-1], a)
        print("tail %d/%d" % (p, q), "error %.2e, rounded %.2e" % (e, np.abs(P / Q / y - 1).max()))
        print("  P", [float(np.float32(v)) for v in c[: p + 1]])
        print("  Q", [1.0] + [float(np.float32(v)) for v in c[p + 1 :]])
