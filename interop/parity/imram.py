"""IMRAM (HuiChen24/IMRAM): the full model, the sum of both directions over three steps."""
import torch

from hosts import Batch, both, linear, options, sizes, text
from ours import METRIC, Names, Result

FOLDER, PYTHON2, DOUBLE = "IMRAM", False, False
GRADIENT = 5e-4  # the module's own in float32 are 3e-4 from those in float64
CASES = {"full model": ("gssf-imram", []), "text model": ("gssf-imram", ["model.interaction.direction=text_to_image"]), "image model": ("gssf-imram", ["model.interaction.direction=image_to_text"]), "full model, with metrics": ("gssf-imram", [*METRIC, "model.interaction.metric=both"])}


def memory(short, long):
    """The two layers of a memory unit, whose rows are those of the gate and then of the update here."""
    table = {}
    for k in ("weight", "bias"):
        name = f"interaction/{long}/memory/{k}"
        table |= {f"gate_{short}.{k}": (name, lambda x: x[: len(x) // 2]), f"linear_{short}.{k}": (name, lambda x: x[len(x) // 2 :])}
    return table


def run(ours, case):
    import evaluation
    import model

    mode = case.split()[0]
    opt = options(model_mode=mode + "_IMRAM", raw_feature_norm="clipped_l2norm", agg_func="Mean", lambda_softmax=9.0, iteration_step=3, no_IMRAM_norm=True, **sizes(ours))
    m = model.SCAN(opt)
    units = {"text": [("t2i", "text_to_image")], "image": [("i2t", "image_to_text")]}
    units["full"] = units["text"] + units["image"]
    table = linear("img_enc.fc_local", "image/fc") | {"txt_enc." + k: v for k, v in text().items()}
    for short, long in units["full"]:
        table |= memory(short, long) if (short, long) in units[mode] else {f"{layer}_{short}.{k}": 0.0 for layer in ("gate", "linear") for k in ("weight", "bias")}
    names = Names(ours, table)
    names.give(m)

    b = Batch(ours, "input/")
    lengths = torch.tensor(b.lengths)
    scores = m(b.paired, b.tokens, lengths, None)
    loss = model.ContrastiveLoss(opt, opt.margin, True)(scores)
    loss.backward()

    m.eval()
    b = Batch(ours, "eval/")
    with torch.no_grad():
        whole, images, last, captions, _ = m.forward_emb(b.images, b.tokens, torch.tensor(b.lengths), None)
    lengths = [b.lengths[i] for i in b.back.tolist()]
    sims = evaluation.shard_xattn(m, whole.numpy(), images.numpy(), last[b.back].numpy(), captions[b.back].numpy(), lengths, opt)
    evaluate = both(evaluation, lambda sims: (images, captions, lengths, sims))
    return Result(torch.from_numpy(sims), {"loss": loss.item()}, names.gradients(m), evaluate)
