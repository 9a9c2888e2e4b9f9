"""Values for align/golden_test.go: closed-form alignment and forecasts.

Run with a Python that has numpy, scipy and scikit-learn, from the root of the repository:

    python tools/goldens/align.py

It writes align/testdata/align.json. Where a library has the method it is the library's: ridge and
leave-one-out by scikit-learn, Procrustes by scipy, CCA as scipy's generalised eigenproblem of the
block matrix, neighbours by scikit-learn. Scores are cosines between images and texts.
Last run with numpy 2.4, scipy 1.17 and scikit-learn 1.9.
"""

import json
import pathlib

import numpy as np
import scipy.linalg
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.neighbors import NearestNeighbors

gen = np.random.default_rng(7)


def array(x):
    x = np.asarray(x, dtype=float)
    return {"shape": list(x.shape), "data": [float(f"{v:.9g}") for v in x.flatten()]}


def rows(n, d, rank):
    """Rows that are multiples of 1/64, so exact in float32, with a shared part."""
    return np.round((shared[:n, :rank] @ gen.normal(size=(rank, d)) + 0.7 * gen.normal(size=(n, d)) + gen.normal(size=d)) * 16) / 64


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cosines(x, y):
    return unit(x) @ unit(y).T


def ridge(x, y, qx, qy, penalty):
    """Cosines of predictions of x from y, with x as it is."""
    model = Ridge(alpha=penalty, fit_intercept=False, solver="svd").fit(y, x)
    return cosines(qx, qy @ model.coef_.T)


def canonical(x, y, share):
    n, d, e = len(x), x.shape[1], y.shape[1]
    cx, cy, c = x.T @ x / n, y.T @ y / n, x.T @ y / n
    cx, cy = cx + share * np.trace(cx) / d * np.eye(d), cy + share * np.trace(cy) / e * np.eye(e)
    a = np.block([[np.zeros((d, d)), c], [c.T, np.zeros((e, e))]])
    b = scipy.linalg.block_diag(cx, cy)
    values, vectors = scipy.linalg.eigh(a, b)
    k = min(d, e, n - 1)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k] * np.sqrt(2)
    return values, vectors[:d], vectors[d:]


def asif(sims, k, p):
    sims = np.maximum(sims, 0)
    for row in sims:
        row[np.argsort(-row, kind="stable")[k:]] = 0
    return unit(sims**p)


def unbiased_hsic(k, l):
    n = len(k)
    k, l = k.copy(), l.copy()
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    one = np.ones(n)
    return (np.trace(k @ l) + k.sum() * l.sum() / (n - 1) / (n - 2) - 2 / (n - 2) * one @ k @ l @ one) / n / (n - 3)


def case(n, d, e, rank):
    x, y = rows(n, d, rank), rows(n, e, rank)
    qx, qy = rows(5, d, rank), rows(5, e, rank)
    out = {"images": array(x), "texts": array(y), "image queries": array(qx), "text queries": array(qy)}
    mx, my = x.mean(0), y.mean(0)
    cx, cy, cqx, cqy = x - mx, y - my, qx - mx, qy - my
    ux, uy = unit(cx), unit(cy)

    share = 0.5
    text, image = [ridge(a, b, p, q, share * np.trace(b.T @ b) / b.shape[1]) for a, b, p, q in ((ux, uy, cqx, cqy), (uy, ux, cqy, cqx))]
    out["ridge text to image"], out["ridge image to text"] = array(text), array(image.T)
    out["ridge both ways"] = array((text + image.T) / 2)
    out["ridge absolute, as it is"] = array(ridge(x, y, qx, qy, 2.0))
    unpenalised = np.linalg.pinv(uy, rcond=1e-3) @ ux
    if n > e:
        out["ridge without penalty"] = array(cosines(cqx, cqy @ unpenalised))
    lambdas = np.array([1e-3, 1e-2, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100]) * np.trace(cy.T @ cy) / e
    model = RidgeCV(alphas=lambdas).fit(y, x)
    out["leave-one-out"] = array(cosines(cqx, cqy @ model.coef_.T))

    w = max(d, e)
    px, py = np.pad(ux, ((0, 0), (0, w - d))), np.pad(uy, ((0, 0), (0, w - e)))
    if n > max(d, e):
        r, _ = scipy.linalg.orthogonal_procrustes(px, py)
        out["procrustes"] = array(cosines(np.pad(cqx, ((0, 0), (0, w - d))) @ r, np.pad(cqy, ((0, 0), (0, w - e)))))

    s, a, b = canonical(ux, uy, share)
    out["correlations"] = array(s)
    for name, power in (("cca unweighted", 0), ("cca", 1), ("cca squared", 2)):
        out[name] = array(cosines(cqx @ a * s**power, cqy @ b * s**power))
    u, v = unit(cqx @ a[:, :3]), unit(cqy @ b[:, :3])
    out["csa"] = array((u * s[:3]) @ v.T)

    out["asif"] = array(asif(unit(qx) @ unit(x).T, 4, 3) @ asif(unit(qy) @ unit(y).T, 4, 3).T)

    k = 3
    near = [NearestNeighbors(n_neighbors=k).fit(z).kneighbors(return_distance=False) for z in (ux, uy)]
    out["mutual"] = array(np.mean([len(set(p) & set(q)) / k for p, q in zip(*near)]))
    g, h = ux @ ux.T, uy @ uy.T
    out["cka"] = array(unbiased_hsic(g, h) / np.sqrt(unbiased_hsic(g, g) * unbiased_hsic(h, h)))
    farther = 0
    for own, other in ((0, h), (1, g)):
        for i in range(n):
            order = [j for j in np.argsort(-other[i], kind="stable") if j != i]
            farther += sum(1 - order.index(j) / (n - 2) for j in near[own][i])
    out["agreement"] = array(farther / (2 * n * k))
    return out


def plan(n, m, eps):
    s = gen.integers(-64, 65, (n, m)) / 64
    k = np.exp(s / eps)
    v = np.ones(m)
    for _ in range(20000):
        u = 1 / n / (k @ v)
        v = 1 / m / (k.T @ u)
    return {"similarities": array(s), "epsilon": array(eps), "plan": array(u[:, None] * k * v)}


cases = {}
for name, size in {"tall": (40, 6, 4, 3), "square": (30, 5, 5, 3), "few pairs": (8, 12, 10, 4)}.items():
    shared = gen.normal(size=(64, 8))
    cases[name] = case(*size)
for name, size in {"plan": (6, 5, 0.1), "sharp plan": (4, 4, 0.03)}.items():
    cases[name] = plan(*size)
path = pathlib.Path("align/testdata/align.json")
path.parent.mkdir(exist_ok=True)
path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
