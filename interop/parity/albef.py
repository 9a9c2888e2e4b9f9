"""ALBEF (salesforce/ALBEF): a pre-training step of the published size with a full queue, and cosines of the evaluation.

Two pairs, so that each has one negative and nothing is drawn; words that are masked are ours. The text has one [CLS], no
[SEP], as in the published pre-training.
"""
import types

import numpy as np
import torch
from torch.nn import functional as F

import bert
import published
from ours import Names, Result

FOLDER, PYTHON2 = "ALBEF", False
FLAGS = ["-rows", "2", "-images", "10"]
CASES = {"pre-training, ViT-B/16 and BERT-base": ("", [])}
DOUBLE = False  # memory
MODULE = "models.model_pretrain"


def build(ours, module, more=()):
    """The published model with our sizes."""
    vision = module.VisionTransformer
    sizes, text = bert.pixels(ours), bert.config(ours, True)
    module.VisionTransformer = lambda **k: vision(**(k | sizes))
    module.BertConfig.from_json_file = lambda path: text
    module.BertForMaskedLM.from_pretrained = lambda name, config: module.BertForMaskedLM(config)
    module.concat_all_gather = lambda x: x
    dim, queue = ours["param/text_proj/weight"].shape[0], len(ours["queue/image"])
    return module.ALBEF(
        tokenizer=types.SimpleNamespace(pad_token_id=0, cls_token_id=2, mask_token_id=4), init_deit=False,
        config={"mlm_probability": 0.15, "embed_dim": dim, "image_res": sizes["img_size"], "vision_width": sizes["embed_dim"], "bert_config": "", "temp": 0.07, "queue_size": queue, "momentum": 1.0} | dict(more))


def give(ours, m):
    """Copies parameters, their momentum copies and the queue into the model. Its momentum is 1: the copies were moved."""
    online = {k: p for k, p in m.named_parameters() if "_m." not in k}
    shapes = {k: p.shape for k, p in online.items()} | {"text_encoder.cls.predictions.bias": ours["param/text/mlm/bias"].shape}
    names = Names(ours, bert.table(ours, shapes))
    with torch.no_grad():
        for name, p in online.items():
            if name == "text_encoder.cls.predictions.decoder.weight":
                continue  # that of the words
            ours_of, of = names.table[name]
            p.copy_(of(ours["param/" + ours_of]))
            copy = "_m.".join(name.split(".", 1))
            momentum = dict(m.named_parameters()).get(copy)
            if momentum is not None and copy != name:
                momentum.copy_(of(ours["momentum/" + ours_of]))
        m.image_queue.copy_(ours["queue/image"].T), m.text_queue.copy_(ours["queue/text"].T)
    for encoder in (m.text_encoder, m.text_encoder_m):
        encoder.cls.predictions.decoder.weight = encoder.bert.embeddings.word_embeddings.weight
        encoder.cls.predictions.decoder.bias = encoder.cls.predictions.bias
    return names


def texts(ours, prefix):
    ids, lengths = ours[prefix + "tokens"], ours[prefix + "lengths"]
    return types.SimpleNamespace(input_ids=ids, attention_mask=(torch.arange(ids.shape[1]) < lengths[:, None]).long())


def cosines(m, ours):
    """Scores of the evaluation's images with its texts."""
    with torch.no_grad():
        images = torch.cat([F.normalize(m.vision_proj(m.visual_encoder(x)[:, 0]), dim=-1) for x in ours["eval/images"].split(5)])
        t = texts(ours, "eval/")
        states = m.text_encoder.bert(t.input_ids, attention_mask=t.attention_mask, return_dict=True, mode="text").last_hidden_state
        return images @ F.normalize(m.text_proj(states[:, 0]), dim=-1).T


def recalls(evaluate, scores):
    """Those of the published function, for five captions of an image, one after the other."""
    n = len(scores)
    found = evaluate(scores, scores.T, np.arange(5 * n) // 5, [range(5 * i, 5 * i + 5) for i in range(n)])
    return {f"i2t_r{k}": found[f"txt_r{k}"] for k in (1, 5, 10)} | {f"t2i_r{k}": found[f"img_r{k}"] for k in (1, 5, 10)}


def run(ours, case):
    import importlib

    bert.prepare()
    module = importlib.import_module(MODULE)
    m = build(ours, module)
    names = give(ours, m)
    m.eval()
    m.mask = lambda *a, **k: (ours["masked/tokens"], ours["masked/labels"])
    images = [ours["input/" + x] for x in ("images", "images/2") if "input/" + x in ours]  # TCL has two views
    mlm, itc, itm = m(*images, texts(ours, "input/"), alpha=0.4)
    (mlm + itc + itm).backward()
    gradients = names.gradients(m)

    evaluate = published.function("Retrieval.py", "itm_eval", np=np)
    scores = cosines(m, ours)
    losses = {"loss": (mlm + itc + itm).item(), "loss/mlm": mlm.item(), "loss/itc": itc.item(), "loss/itm": itm.item()}
    return Result(scores, losses, gradients, lambda sims: recalls(evaluate, sims))
