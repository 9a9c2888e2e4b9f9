"""SentEval (facebookresearch/SentEval) and its fork in princeton-nlp/SimCSE: correlations of sentence similarity."""
import types

import torch

from ours import Result

FOLDER, PYTHON2 = "SentEval", False
CASES = {"STS": ("sts", [])}


def run(ours, case):
    import senteval.sts as sts

    x, y, data, at = ours["sts/similarities"].double().numpy(), ours["sts/scores"].double().numpy(), {}, 0
    for k, n in enumerate(ours.settings["parts"].strip("[]").split()):
        part = slice(at, at := at + int(n))
        data[f"part{k}"] = list(x[part]), list(x[part]), list(y[part])
    task = object.__new__(sts.STSEval)
    task.datasets, task.data, task.similarity = list(data), data, lambda a, b: a.item()
    found = task.run(types.SimpleNamespace(batch_size=32), lambda params, batch: torch.tensor(batch).unsqueeze(1))
    numbers = {f"{part}_{k}": 100 * found[part][k][0] for part in data for k in ("spearman", "pearson")}
    return Result(recalls=numbers | {f"{mean}_{k}": 100 * v for k in ("spearman", "pearson") for mean, v in found["all"][k].items()})
