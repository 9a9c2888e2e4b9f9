"""BFAN (CrossmodalGroup/BFAN): focal attention of both directions, with equal confidences and with those by weights."""
import numpy as np
import torch

from hosts import IMAGE, Batch, both, features, options, sizes, text
from ours import Names, Result

FOLDER, PYTHON2 = "BFAN", True
BOTH = ["model.interaction.kind=bfan", "model.interaction.direction=both"]
CASES = {"focal attention, equal": ("gssf-scan", BOTH), "focal attention, prob": ("gssf-scan", [*BOTH, "model.interaction.focus=prob"])}

EDGE = 2e-5  # distance of a weight to the mean of its row, relative to it
GRADIENT = 3e-4  # a region whose products with all words are nearly 0 is divided by their length (docs/interop.md)


def run(ours, case):
    import evaluation
    import model

    kind = case.split(", ")[1]
    opt = options(focal_type=kind, lambda_softmax=20.0, **sizes(ours))
    m = model.BFAN(opt)
    tables = Names(ours, IMAGE), Names(ours, text())
    tables[0].give(m.img_enc), tables[1].give(m.txt_enc)

    b = Batch(ours, "input/")
    loss = m.criterion(*m.forward_emb(b.paired, b.tokens, b.lengths))
    loss.backward()

    # A weight at the mean of its row is left out or not by rounding: pairs that have one are not compared.
    near, published = [], getattr(model, "focal_" + kind)

    def focal(weights, images, queries, sources):
        confidence = weights.sqrt() if kind == "prob" else torch.ones_like(weights)
        mean = (weights * confidence).sum(-1, keepdim=True) / confidence.sum(-1, keepdim=True)
        near.append(((weights / mean - 1).abs() < EDGE).flatten(1).any(1))
        return published(weights, images, queries, sources)

    setattr(model, "focal_" + kind, focal)
    images, captions, lengths = features(m, Batch(ours, "eval/"))
    images, captions = images.numpy().astype(np.float64), captions.numpy().astype(np.float64)
    sims = evaluation.shard_xattn(images, captions, lengths, opt)
    undecided = torch.stack(near[::2]) | torch.stack(near[1::2])  # (captions, images), by both directions
    evaluate = both(evaluation, lambda sims: (len(sims), sims))
    gradients = tables[0].gradients(m.img_enc) | tables[1].gradients(m.txt_enc)
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, gradients, evaluate, undecided=undecided.T)
