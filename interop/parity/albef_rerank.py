"""ALBEF (salesforce/ALBEF): its evaluation in two steps, of which the second scores candidates by the matching head."""
import datetime
import importlib
import time
import types

import numpy as np
import torch
from torch.nn import functional as F

import albef
import bert
import published
from ours import Result

FOLDER, PYTHON2 = "ALBEF", False
TOP = 10
FLAGS = ["-rows", "2", "-images", "12", "-rerank", str(TOP)]
CASES = {"re-ranked retrieval": ("geomm", ["objective.itc.score=cosine"])}


def run(ours, case):
    bert.prepare()
    m = albef.build(ours, importlib.import_module(albef.MODULE))
    albef.give(ours, m)
    m.eval()
    all_texts, images = albef.texts(ours, "eval/"), ours["eval/images"]
    all_texts.to = lambda device: all_texts
    logger = types.SimpleNamespace(MetricLogger=lambda **k: types.SimpleNamespace(log_every=lambda rows, n, header: rows), get_world_size=lambda: 1, get_rank=lambda: 0)
    evaluation = published.function(
        "Retrieval.py", "evaluation", torch=torch, F=F, np=np, time=time, datetime=datetime, utils=logger, args=types.SimpleNamespace(distributed=False))

    class Data(list):
        dataset = types.SimpleNamespace(text=[""] * len(all_texts.input_ids), image=[""] * len(images))

    retrieval = types.SimpleNamespace(eval=m.eval, text_encoder=m.text_encoder.bert, text_proj=m.text_proj, visual_encoder=m.visual_encoder, vision_proj=m.vision_proj, itm_head=m.itm_head)
    with torch.no_grad():
        i2t, t2i = evaluation(retrieval, Data([(images, None)]), lambda *a, **k: all_texts, "cpu", {"k_test": TOP})
    evaluate = published.function("Retrieval.py", "itm_eval", np=np)
    n = len(i2t)
    found = evaluate(i2t, t2i, np.arange(5 * n) // 5, [range(5 * i, 5 * i + 5) for i in range(n)])
    recalls = {f"i2t_r{k}": found[f"txt_r{k}"] for k in (1, 5, 10)} | {f"t2i_r{k}": found[f"img_r{k}"] for k in (1, 5, 10)}
    return Result(albef.cosines(m, ours), recalls=recalls, others={"reranked/i2t": torch.from_numpy(i2t), "reranked/t2i": torch.from_numpy(t2i)})
