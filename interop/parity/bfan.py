"""BFAN (CrossmodalGroup/BFAN): focal attention of both directions, all weights equal."""
import numpy as np
import torch

from hosts import IMAGE, Batch, both, features, options, sizes, text
from ours import Names, Result

FOLDER, PYTHON2 = "BFAN", True
CASES = {"focal attention, equal": ("gssf-scan", ["model.interaction.kind=bfan", "model.interaction.direction=both"])}

EDGE = 2e-5  # distance of a weight to the mean of its row, relative to it
GRADIENT = 2e-4  # a weight that rounding puts on the other side of the mean of its row changes a gradient


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

    # A weight at the mean of its row is left out or not by rounding: pairs that have one are not compared.
    near, published = [], model.focal_equal

    def focal(weights, images, queries, sources):
        near.append(((weights * sources - 1).abs() < EDGE).flatten(1).any(1))
        return published(weights, images, queries, sources)

    model.focal_equal = focal
    images, captions, lengths = features(m, Batch(ours, "eval/"))
    images, captions = images.numpy().astype(np.float64), captions.numpy().astype(np.float64)
    sims = evaluation.shard_xattn(images, captions, lengths, opt)
    undecided = torch.stack(near[::2]) | torch.stack(near[1::2])  # (captions, images), by both directions
    evaluate = both(evaluation, lambda sims: (len(sims), sims))
    gradients = tables[0].gradients(m.img_enc) | tables[1].gradients(m.txt_enc)
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, gradients, evaluate, undecided=undecided.T, left_out={"gssf/weight": "the metric of GSSF"})
