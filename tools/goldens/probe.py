"""Values for eval/probe_golden_test.go: multinomial logistic regression by scikit-learn.

Run with a Python that has numpy and scikit-learn, from the root of the repository:

    python tools/goldens/probe.py

It writes eval/testdata/probe.json. The mean cross-entropy with decay/2 |W|^2 is scikit-learn's loss with C = 1/(decay n);
the bias has no penalty in either.
Last run with numpy 2.4 and scikit-learn 1.9.
"""

import json
import pathlib

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

gen = np.random.default_rng(11)
cases = []
for n, d, k, decay in [(60, 5, 3, 1e-2), (80, 12, 4, 1e-3), (50, 6, 2, 0.3)]:
    centres = gen.normal(size=(k, d))
    y = gen.integers(0, k, size=n + 20)
    x = np.round((centres[y] + 1.5 * gen.normal(size=(n + 20, d)) + 4) * 16) / 64  # exact in float32
    scaler = StandardScaler().fit(x[:n])
    model = LogisticRegression(C=1 / (decay * n), tol=1e-12, max_iter=100000).fit(scaler.transform(x[:n]), y[:n])
    assert list(model.classes_) == list(range(k))
    scores = model.predict_log_proba(scaler.transform(x[:n]))
    w = model.coef_
    loss = -scores[np.arange(n), y[:n]].mean() + decay / 2 * (w**2).sum()
    if k == 2:  # scikit-learn fits one vector v = w1 - w0; two of half of it have half the penalty at twice the decay
        model = LogisticRegression(C=2 / (decay * n), tol=1e-12, max_iter=100000).fit(scaler.transform(x[:n]), y[:n])
        scores = model.predict_log_proba(scaler.transform(x[:n]))
        w = np.concatenate([-model.coef_ / 2, model.coef_ / 2])
        loss = -scores[np.arange(n), y[:n]].mean() + decay / 2 * (w**2).sum()
    cases.append({
        "classes": k, "decay": decay, "dim": d,
        "train": x[:n].flatten().tolist(), "train_labels": y[:n].tolist(),
        "test": x[n:].flatten().tolist(), "predicted": model.predict(scaler.transform(x[n:])).tolist(),
        "loss": float(f"{loss:.9g}"), "weight": [float(f"{v:.7g}") for v in w.flatten()],
    })

path = pathlib.Path("eval/testdata/probe.json")
path.parent.mkdir(exist_ok=True)
path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
