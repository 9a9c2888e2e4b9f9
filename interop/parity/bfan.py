"""BFAN (CrossmodalGroup/BFAN): focal attention of both directions, all weights equal."""
import numpy as np
import torch

from hosts import IMAGE, Batch, features, options, recalls, sizes, text
from ours import Names, Result

FOLDER, PYTHON2 = "BFAN", True
CASES = {"focal attention, equal": ("gssf-scan", ["model.interaction.kind=bfan", "model.interaction.direction=both"])}


def run(ours, case):
    import evaluation
    import model

    opt = options(focal_type="equal", lambda_softmax=20.0, **sizes(ours))
    m = model.BFAN(opt)
    tables = Names(ours, IMAGE), Names(ours, text())
    tables[0].give(m.img_enc), tables[1].give(m.txt_enc)

    b = Batch(ours, "input/")
    loss = m.criterion(*m.forward_emb(b.paired, b.tokens, b.lengths))
    loss.backward()

    images, captions, lengths = features(m, Batch(ours, "eval/"))
    sims = evaluation.shard_xattn(images.numpy().astype(np.float64), captions.numpy().astype(np.float64), lengths, opt)
    found = recalls(evaluation.i2t(len(images), sims), evaluation.t2i(len(images), sims))
    gradients = tables[0].gradients(m.img_enc) | tables[1].gradients(m.txt_enc)
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, gradients, found, {"gssf/weight": "the metric of GSSF"})
