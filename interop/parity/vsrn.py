"""VSRN (KunpengLi1994/VSRN) with the loss of its decoder of captions. Regions are brought to unit length each before and
behind the graph, where the published norm is over the regions of a channel, and the batch norm of Flickr30K is there with
the first norm of COCO, as here."""
import torch

from hosts import IMAGE, PARTS, Batch, both, linear, one_hot, sizes, text
from ours import METRIC, Names, Result

FOLDER, PYTHON2 = "VSRN", True
CASES = {"hinge and captioning": ("gssf-vsrn", []), "with a metric": ("gssf-vsrn", METRIC)}

GRADIENT = 2e-4  # a batch norm takes the mean away, so that terms of biases before it cancel: the module's own in float32 are 1.9e-4 off


class Both(str):
    """The name of a data set that both is and is not Flickr30K."""

    __eq__ = __ne__ = lambda self, other: True
    __hash__ = str.__hash__


def image():
    table = IMAGE | {f"img_rnn.{k}_l0": f"image/pool/{k}" for k in PARTS}
    norm = ("weight", "bias", "running_mean", "running_var")
    for i in range(4):
        theirs, at = f"Rs_GCN_{i + 1}.", f"image/graph/{i:02d}/"
        for layer, name in (("g", "g"), ("theta", "theta"), ("phi", "phi"), ("W.0", "w")):
            table |= {f"{theirs}{layer}.weight": (f"{at}{name}/weight", lambda x: x.unsqueeze(-1)), f"{theirs}{layer}.bias": f"{at}{name}/bias"}
        table |= {f"{theirs}W.1.{k}": f"{at}bn/{k}" for k in norm}
    return table | {f"bn.{k}": f"image/bn/{k}" for k in norm}


def captioning():
    at, beside = "captioning/", lambda a, b: torch.cat([a, b], 1)
    return (
        linear("encoder.vid2hid", at + "encoder/fc") | {f"encoder.rnn.{k}_l0": f"{at}encoder/{k}" for k in PARTS} | linear("decoder.out", at + "out")
        | {
            "decoder.embedding.weight": at + "words/weight",
            "decoder.attention.linear1.weight": ((at + "attention/memory/weight", at + "attention/state/weight"), beside),
            "decoder.attention.linear1.bias": at + "attention/memory/bias",
            "decoder.attention.linear2.weight": (at + "attention/score/weight", lambda x: x.unsqueeze(0)),
            "decoder.rnn.weight_ih_l0": ((at + "decoder/words/weight", at + "decoder/memory/weight"), beside),
            "decoder.rnn.weight_hh_l0": at + "decoder/weight_hh",
            "decoder.rnn.bias_ih_l0": at + "decoder/words/bias",
            "decoder.rnn.bias_hh_l0": at + "decoder/bias_hh",
        })


def run(ours, case):
    import evaluation
    import model

    published = model.l2norm
    model.l2norm = lambda x: published(x) if x.dim() == 2 else published(x.transpose(1, 2)).transpose(1, 2).contiguous()
    s, tokens = sizes(ours), ours["input/tokens"]
    img_enc = model.EncoderImagePrecompAttn(s["img_dim"], s["embed_size"], "f30k_precomp")
    img_enc.data_name = Both("f30k_precomp")
    txt_enc = model.EncoderText(s["vocab_size"], s["word_dim"], s["embed_size"], 1)
    hidden, word = ours["param/captioning/out/weight"].shape[1], ours["param/captioning/words/weight"].shape[1]
    decoder = model.DecoderRNN(s["vocab_size"], tokens.shape[1], hidden, word, input_dropout_p=0, rnn_dropout_p=0)
    writer = model.S2VTAttModel(model.EncoderRNN(s["embed_size"], hidden, input_dropout_p=0, rnn_dropout_p=0), decoder)
    named = [(Names(ours, t), m) for t, m in ((image(), img_enc), (text(reverse=False), txt_enc), (captioning(), writer))]
    for names, module in named:
        names.give(module)

    b = Batch(ours, "eval/")
    img_enc.eval()
    with torch.no_grad():
        images, captions = img_enc(b.images)[0], txt_enc(b.tokens, b.lengths)[b.back]

    img_enc.train()
    b = Batch(ours, "input/")
    pooled, regions = img_enc(b.paired)
    hinge = model.ContrastiveLoss(margin=0.2, max_violation=True)(pooled, txt_enc(b.tokens, b.lengths))
    labels = tokens[b.order]
    mask = (torch.arange(labels.shape[1]) < torch.tensor(b.lengths)[:, None]).float()
    caption = model.utils.LanguageModelCriterion()(writer(regions, labels, "train")[0], labels[:, 1:], mask[:, 1:])
    (hinge + caption).backward()
    gradients = {}
    for names, module in named:
        gradients |= names.gradients(module)
    losses = {"loss": (hinge + caption).item(), "loss/hinge": hinge.item(), "loss/captioning": caption.item()}
    return Result(images @ captions.T, losses, gradients, both(evaluation, one_hot))
