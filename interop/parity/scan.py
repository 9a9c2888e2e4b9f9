"""SCAN (kuanghuei/SCAN): scores from text to image and from image to text, pooled by LogSumExp and by the mean."""
import numpy as np
import torch

from hosts import IMAGE, Batch, Recorder, both, features, options, sizes, text
from ours import Names, Result

FOLDER, PYTHON2, DOUBLE = "SCAN", True, False
CASES = {
    "t2i, LogSumExp": ("gssf-scan", []),
    "t2i, mean": ("gssf-scan", ["model.interaction.pool=mean"]),
    "i2t, LogSumExp": ("gssf-scan", ["model.interaction.direction=image_to_text"]),
    "i2t, mean": ("gssf-scan", ["model.interaction.direction=image_to_text", "model.interaction.pool=mean"]),
}


def run(ours, case):
    import evaluation
    import model

    direction, pool = case.split(", ")
    opt = options(
        cross_attn=direction, agg_func={"mean": "Mean"}.get(pool, pool), raw_feature_norm="clipped_l2norm", lambda_softmax={"t2i": 9.0, "i2t": 4.0}[direction],
        lambda_lse={"t2i": 6.0, "i2t": 5.0}[direction], **sizes(ours))
    m = model.SCAN(opt)
    m.logger = Recorder()
    tables = Names(ours, IMAGE), Names(ours, text())
    tables[0].give(m.img_enc), tables[1].give(m.txt_enc)

    b = Batch(ours, "input/")
    loss = m.criterion(*m.forward_emb(b.paired, b.tokens, b.lengths))
    loss.backward()

    images, captions, lengths = features(m, Batch(ours, "eval/"))
    images, captions = images.numpy().astype(np.float64), captions.numpy().astype(np.float64)
    shard = {"t2i": evaluation.shard_xattn_t2i, "i2t": evaluation.shard_xattn_i2t}[direction]
    sims = shard(images, captions, lengths, opt)
    evaluate = both(evaluation, lambda sims: (images, captions, lengths, sims))
    gradients = tables[0].gradients(m.img_enc) | tables[1].gradients(m.txt_enc)
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, gradients, evaluate)
