"""Values for eval/sentences_golden_test.go: correlations, rules that tell classes by cosines, isotropy, and
sentiments.

Run with a Python that has numpy, scipy and scikit-learn, from the root of the repository:

    python tools/goldens/sentences.py

It writes eval/testdata/sentences.json. Correlations are scipy's, clusters scikit-learn's best of many starts matched by scipy's
linear_sum_assignment, thresholds those of a search over all, spectra those of numpy's svd.
Last run with numpy 2.4, scipy 1.17 and scikit-learn 1.9.
"""

import itertools
import json
import pathlib

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, spearmanr
from sklearn.cluster import KMeans
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import StandardScaler

gen = np.random.default_rng(7)


def correlations():
    ends, names = [30, 72, 90], ["a", "b", "c"]
    scores = np.round(gen.uniform(0, 5, size=90) * 5) / 5  # with ties
    cosines = np.round(scores / 8 + 0.2 * gen.normal(size=90), 2)
    parts, first = [], 0
    for end in ends:
        x, y = cosines[first:end], scores[first:end]
        parts.append((end - first, spearmanr(x, y)[0], pearsonr(x, y)[0]))
        first = end
    sizes = [p[0] for p in parts]
    both = lambda f: {"spearman": f([p[1] for p in parts]), "pearson": f([p[2] for p in parts])}
    return {
        "cosines": cosines.tolist(), "scores": scores.tolist(), "names": names, "ends": ends,
        "parts": [{"spearman": s, "pearson": p} for _, s, p in parts],
        "all": {"spearman": spearmanr(cosines, scores)[0], "pearson": pearsonr(cosines, scores)[0]},
        "mean": both(np.mean), "weighted": both(lambda v: np.average(v, weights=sizes)),
    }


def rules(near, n):
    k = len(near)
    labels = gen.integers(0, k, size=n)
    place = np.argsort(near)[labels]
    cosines = np.round(0.9 - 0.6 * place / k + 0.15 * gen.normal(size=n), 2)
    told = lambda t: np.array(near)[(cosines[:, None] <= np.array(t)[None]).sum(1)]
    values = np.unique(cosines)
    cuts = np.concatenate([[-2], (values[1:] + values[:-1]) / 2, [2]])
    tuned = max((told(t[::-1]) == labels).sum() for t in itertools.combinations_with_replacement(cuts, k - 1))
    fixed = (told([(k - i) / k for i in range(1, k)]) == labels).sum()
    km = KMeans(k, n_init=200, random_state=0, tol=0).fit(cosines[:, None])
    table = np.zeros((k, k), int)
    np.add.at(table, (km.labels_, labels), 1)
    rows, columns = linear_sum_assignment(-table)
    return {"near": list(near), "cosines": cosines.tolist(), "labels": labels.tolist(), "fixed": int(fixed), "tuned": int(tuned),
            "kmeans": int(table[rows, columns].sum()), "inertia": float(km.inertia_)}


def isotropy(n, d, positives):
    x = (gen.normal(size=(n, d)) * np.geomspace(1, 0.1, d) + 0.5).astype(np.float32)
    z = x.astype(float)
    u = z / np.linalg.norm(z, axis=1, keepdims=True)
    s = np.linalg.svd(z - z.mean(0), compute_uv=False)
    p = s / s.sum()
    var = np.zeros(d)
    var[:len(s)] = s**2
    hat = np.sqrt(d) * var / np.linalg.norm(var)
    defect = np.linalg.norm(hat - 1) / np.sqrt(2 * (d - np.sqrt(d)))
    share = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    pos = pairs[gen.choice(len(pairs), positives, replace=False)]
    return {
        "sentences": n, "width": d, "x": x.flatten().tolist(), "pairs": pos.tolist(),
        "mean_cosine": float((u[pairs[:, 0]] * u[pairs[:, 1]]).sum(1).mean()),
        "effective_rank": float(np.exp(-(p[p > 0] * np.log(p[p > 0])).sum())),
        "participation_ratio": float((s**2).sum() ** 2 / (s**4).sum()),
        "isoscore": float((d * share - 1) / (d - 1)),
        "uniformity": float(np.log(np.exp(-2 * pdist(u) ** 2).mean())),
        "alignment": float((np.linalg.norm(u[pos[:, 0]] - u[pos[:, 1]], axis=1) ** 2).mean()),
        "spectrum": s.tolist(),
    }


def sentiment():
    labels = np.round(gen.uniform(-3, 3, size=40) * 3) / 3
    labels[:6] = 0
    p = np.round(labels + gen.normal(size=40), 1)
    p[:4] = [0.5, 1.5, -0.5, 4]  # halves, and beyond the scale
    some = labels != 0
    x = (gen.normal(size=(40, 5)) * [1, 10, 0.1, 1, 0] + [0, 5, 0, -3, 2]).astype(np.float32)  # the last is constant
    x64 = x.astype(float)
    z = StandardScaler().fit(x64[:30])
    layer = Ridge(alpha=0.2 * 30, solver="cholesky").fit(z.transform(x64[:30]), labels[:30])
    return {
        "labels": labels.tolist(), "predicted": p.tolist(),
        "accuracy7": 100 * float((np.round(np.clip(p, -3, 3)) == np.round(np.clip(labels, -3, 3))).mean()),
        "accuracy2": 100 * accuracy_score(labels[some] > 0, p[some] > 0), "f1": 100 * f1_score(labels[some] > 0, p[some] > 0, average="weighted"),
        "nonnegative": 100 * accuracy_score(labels >= 0, p >= 0), "mae": float(np.abs(p - labels).mean()), "pearson": float(np.corrcoef(p, labels)[0, 1]),
        "x": x.flatten().tolist(), "penalty": 0.2, "train": 30, "told": layer.predict(z.transform(x64[30:])).tolist(),
    }


out = {"sts": correlations(), "rules": [rules((1, 0), 40), rules((0, 1, 2), 60), rules((0, 1, 2), 21)], "isotropy": [isotropy(20, 6, 4), isotropy(8, 12, 3)], "sentiment": sentiment()}
path = pathlib.Path("eval/testdata/sentences.json")
path.write_text(json.dumps(out, indent=None, separators=(",", ":")) + "\n")
print(path, path.stat().st_size)
