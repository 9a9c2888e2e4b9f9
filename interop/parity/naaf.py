"""NAAF (CrossmodalGroup/NAAF) with words of random embeddings, at the start, where both boundaries are 0."""
import numpy as np
import torch

from hosts import IMAGE, Batch, both, features, options, sizes, text
from ours import Names, Result

FOLDER, PYTHON2 = "NAAF", False
CASES = {"negative-aware attention": ("gssf-naaf", [])}


def run(ours, case):
    import evaluation
    import model

    opt = options(lambda_softmax=20.0, thres=0, thres_safe=0, alpha=2.0, **sizes(ours))
    m = model.NAAF(opt)
    tables = Names(ours, IMAGE), Names(ours, text())
    tables[0].give(m.img_enc), tables[1].give(m.txt_enc)

    b = Batch(ours, "input/")
    images, captions, lengths = m.forward_emb(b.paired, b.tokens, b.lengths)
    loss = m.criterion(model.xattn_score(images, captions, lengths, opt), len(images))
    loss.backward()

    opt.thres = opt.thres_safe = 0  # the step has not been made here
    images, captions, lengths = features(m, Batch(ours, "eval/"))
    sims = evaluation.shard_xattn(images.numpy().astype(np.float64), captions.numpy().astype(np.float64), lengths, opt, 128)
    evaluate = both(evaluation, lambda sims: (images, sims))
    gradients = tables[0].gradients(m.img_enc) | tables[1].gradients(m.txt_enc)
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, gradients, evaluate)
