"""Writes eval/ablation/testdata/significance.json: BCa intervals of scipy and Holm's correction of statsmodels.

    venv/bin/python tools/goldens/significance.py      # scipy 1.17, statsmodels 0.15
"""
import json
import pathlib

import numpy as np
from scipy.stats import bootstrap
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(52)
cases = []
for name, x in {  # sums of queries are exact, so that ties are ties in any order of adding
    "ten seeds": rng.normal(0.5, 1.0, 10),
    "skewed": rng.exponential(1.0, 12) ** 2,
    "queries": rng.choice([-16.0, 0.0, 0.0, 0.0, 16.0, 32.0], 60),
    "three": np.array([0.1, 0.4, 2.0]),
}.items():
    given = bootstrap((x,), np.mean, n_resamples=499, method="BCa", rng=np.random.default_rng(1))
    many = bootstrap((x,), np.mean, n_resamples=200000, method="BCa", rng=np.random.default_rng(2), batch=10000)
    cases.append({"name": name, "x": x.tolist(), "means": given.bootstrap_distribution.tolist(),
                  "interval": list(given.confidence_interval), "many": list(many.confidence_interval)})
p = [0.012, 0.03, 0.0004, 0.8, 0.03, 0.0499, 0.011]
out = {"bca": cases, "p": p, "holm": multipletests(p, method="holm")[1].tolist()}
path = pathlib.Path("eval/ablation/testdata/significance.json")
path.parent.mkdir(exist_ok=True)
path.write_text(json.dumps(out, indent=1) + "\n")
