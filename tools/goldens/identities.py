"""Values for eval/identities_test.go: mAP, mINP and CMC of queries against a gallery.

Run with a Python that has numpy, from the root of the repository:

    python tools/goldens/identities.py

It writes eval/testdata/identities.json. The measures are written as in the evaluation of Market-1501 and in fast-reid:
sort the gallery of each query, drop images of its id and camera, sum up. Scores have no ties.
"""

import json
import pathlib

import numpy as np

rng = np.random.default_rng(71)


def measure(scores, qid, gid, qcam, gcam):
    aps, inps, cmcs, unmatched = [], [], [], 0
    for i in range(len(qid)):
        order = np.argsort(-scores[i])
        keep = ~((gid[order] == qid[i]) & (gcam[order] == qcam[i]))
        matches = (gid[order] == qid[i])[keep]
        if not matches.any():
            unmatched += 1
            continue
        cmc = matches.cumsum()
        places = np.flatnonzero(matches) + 1
        aps.append(np.mean(cmc[matches] / places))
        inps.append(cmc[-1] / places[-1])
        cmcs.append([cmc[min(k, len(cmc)) - 1] > 0 for k in (1, 5, 10, 100)])
    r = 100 * np.mean(cmcs, axis=0)
    return {"map": 100 * np.mean(aps), "minp": 100 * np.mean(inps), "r1": r[0], "r5": r[1], "r10": r[2], "r100": r[3]}, unmatched


cases = []
for queries, gallery, ids, cameras in ((7, 20, 4, 2), (11, 150, 30, 3), (5, 12, 9, 1)):
    qid, gid = rng.integers(0, ids, queries), rng.integers(0, ids, gallery)
    qcam, gcam = rng.integers(0, cameras, queries), rng.integers(0, cameras + 1, gallery)
    scores = np.stack([rng.permutation(gallery) for _ in qid]) / 64 + (qid[:, None] == gid) * 0.5
    scores += np.arange(gallery) / 65536  # no ties
    want, unmatched = measure(scores, qid, gid, qcam, gcam)
    cases.append({"QueryID": qid.tolist(), "GalleryID": gid.tolist(), "QueryCamera": qcam.tolist(), "GalleryCamera": gcam.tolist(),
                  "Scores": scores.ravel().tolist(), "Want": {k: float(v) for k, v in want.items()}, "Unmatched": unmatched})

pathlib.Path("eval/testdata/identities.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
