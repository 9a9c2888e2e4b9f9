"""What published hosts over features of regions share: the names of their layers, batches and recalls."""
import types

import numpy as np
import torch

PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def rnn(theirs, ours, reverse=True):
    """The names of a torch.nn.GRU of one layer."""
    table = {f"{theirs}.{k}_l0": f"{ours}/forward/{k}" for k in PARTS}
    if reverse:
        table |= {f"{theirs}.{k}_l0_reverse": f"{ours}/reverse/{k}" for k in PARTS}
    return table


def linear(theirs, ours, bias=True):
    return {f"{theirs}.{k}": f"{ours}/{k}" for k in ("weight", "bias")[: 1 + bias]}


IMAGE = linear("fc", "image/fc")


def text(gru="rnn", reverse=True):
    return {"embed.weight": "text/embeddings/word/weight"} | rnn(gru, "text/layers/00", reverse)


class Batch:
    """A batch with the longest texts first, as packed sequences wanted it, cut to the longest."""

    def __init__(self, ours, prefix):
        lengths = ours[prefix + "lengths"]
        self.order = lengths.argsort(descending=True, stable=True)
        self.back = self.order.argsort()
        self.lengths = lengths[self.order].tolist()
        self.tokens = ours[prefix + "tokens"][self.order, : max(self.lengths)]
        self.images = ours[prefix + "regions"]
        self.paired = self.images[self.order] if len(self.images) == len(lengths) else None


def options(**more):
    return types.SimpleNamespace(
        margin=0.2, max_violation=True, grad_clip=2.0, learning_rate=2e-4, num_layers=1, bi_gru=True, no_imgnorm=False, no_txtnorm=False, use_abs=False, measure="cosine",
        data_name="coco_precomp", precomp_enc_type="basic", precomp_enc_text_type="basic", finetune=False, cnn_type="", **more)


def sizes(ours):
    """The sizes of the encoders as the options of the published code call them."""
    width, features = ours["param/image/fc/weight"].shape
    vocab, embedding = ours["param/text/embeddings/word/weight"].shape
    return {"img_dim": features, "embed_size": width, "vocab_size": vocab, "word_dim": embedding}


def recalls(i2t, t2i):
    """Those of the tuples that the published functions return."""
    out = {f"i2t_r{k}": v for k, v in zip((1, 5, 10), i2t)} | {f"t2i_r{k}": v for k, v in zip((1, 5, 10), t2i)}
    return out | {"i2t_median_rank": i2t[3], "t2i_median_rank": t2i[3], "i2t_mean_rank": i2t[4], "t2i_mean_rank": t2i[4]}


def both(evaluation, arguments):
    """The published evaluation of both directions as a function of the scores, of which it is given arguments."""
    return lambda sims: recalls(evaluation.i2t(*arguments(sims)), evaluation.t2i(*arguments(sims)))


def one_hot(sims):
    """Features of images, each five times, and of captions whose products are scores."""
    return sims.repeat(5, 0), np.eye(sims.shape[1])


class Recorder:
    """The logger of a model, which keeps nothing."""

    def update(self, *a):
        pass


def features(model, batch):
    """Embeddings of both sides without gradients, the texts in their own order."""
    with torch.no_grad():
        out = model.forward_emb(batch.images, batch.tokens, batch.lengths)
    return out[0], out[1][batch.back], [batch.lengths[i] for i in batch.back.tolist()]
