"""BFAN (CrossmodalGroup/BFAN): focal attention of both directions, all weights equal."""
import numpy as np
import torch

from hosts import IMAGE, Batch, both, features, options, sizes, text
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
    images, captions = images.numpy().astype(np.float64), captions.numpy().astype(np.float64)
    sims = evaluation.shard_xattn(images, captions, lengths, opt)
    # A weight at the mean of its row is left out or not by rounding: pairs that noise of a float32 moves are not compared.
    noise, undecided = np.random.default_rng(5), np.zeros(sims.shape, bool)
    for _ in range(3):
        moved = [x * (1 + 3e-7 * noise.standard_normal(x.shape)) for x in (images, captions)]
        undecided |= np.abs(evaluation.shard_xattn(*moved, lengths, opt) - sims) > 3e-6
    evaluate = both(evaluation, lambda sims: (len(sims), sims))
    gradients = tables[0].gradients(m.img_enc) | tables[1].gradients(m.txt_enc)
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, gradients, evaluate, undecided=torch.from_numpy(undecided), left_out={"gssf/weight": "the metric of GSSF"})
