"""ESA (KevinLight831/ESA) with recurrent units, one view of an image and of a text: its masks are random, and texts have
none here."""
import json
import os
import tempfile
import types

import torch

from hosts import IMAGE, Batch, both, linear, options, sizes, text
from ours import METRIC, Names, Result

FOLDER, BELOW, PYTHON2 = "ESA", "ESA_BIGRU", False
CASES = {"one view": ("gssf-esa", []), "one view, with a metric": ("gssf-esa", METRIC)}
NORM = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}


def image():
    table = IMAGE | linear("linear1", "image/pool") | linear("mlp.layers.0", "image/fc1") | {"mlp.layers.1.weight": "image/fc2/weight", "mlp.layers.1.bias": 0.0}
    return table | {f"mlp.bns.0.{k}": f"image/bn1/{k}" for k in NORM} | {f"mlp.bns.1.{k}": v for k, v in NORM.items()}


def run(ours, case):
    import torchtext
    from lib import encoders, evaluation, loss as losses

    s = sizes(ours)
    torchtext.vocab = types.SimpleNamespace(GloVe=lambda cache: types.SimpleNamespace(vectors=torch.zeros(1, s["word_dim"]), stoi={}))
    with tempfile.TemporaryDirectory() as at:
        opt = options(hardnum=1, vocab_path=at, **s)
        with open(os.path.join(at, opt.data_name + "_precomp_vocab.json"), "w") as f:
            json.dump({"word2idx": {}}, f)
        img_enc, txt_enc = encoders.get_image_encoder(opt.img_dim, opt.embed_size), encoders.get_text_encoder(opt)
    named = [(Names(ours, image()), img_enc), (Names(ours, text() | linear("linear1", "text/pool")), txt_enc)]
    for names, module in named:
        names.give(module).eval()

    b = Batch(ours, "eval/")
    with torch.no_grad():
        images, captions = img_enc(b.images, None), txt_enc(b.tokens, torch.tensor(b.lengths))[b.back]
    sims = evaluation.compute_sim(images.numpy(), captions.numpy())
    evaluate = both(evaluation, lambda sims: (len(sims), sims))

    img_enc.mlp.train()  # the statistics of the batch, and all regions
    b = Batch(ours, "input/")
    loss = sum(losses.ContrastiveLoss(opt, 0.2, True)(img_enc(b.paired, None), txt_enc(b.tokens, torch.tensor(b.lengths))))
    loss.backward()
    gradients = {}
    for names, module in named:
        gradients |= names.gradients(module)
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, gradients, evaluate)
