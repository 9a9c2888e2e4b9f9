"""VSE++ (fartashf/vsepp) on features of images: its encoder has one feature of an image, which is the mean of its regions here."""
import torch

from hosts import IMAGE, Batch, both, one_hot, options, sizes, text
from ours import Names, Result

FOLDER, PYTHON2, DOUBLE = "vsepp", True, False
CASES = {"cosine, hardest negatives": ("gssf-vsepp", [])}


def run(ours, case):
    import evaluation
    import model

    m = model.VSE(options(**sizes(ours)))
    tables = Names(ours, IMAGE), Names(ours, text(reverse=False))
    tables[0].give(m.img_enc), tables[1].give(m.txt_enc)

    b = Batch(ours, "input/")
    loss = m.criterion(m.img_enc(b.paired.mean(1)), m.txt_enc(b.tokens, b.lengths))  # a mean before a linear layer is one behind it
    loss.backward()

    b = Batch(ours, "eval/")
    with torch.no_grad():
        images, captions = m.img_enc(b.images.mean(1)), m.txt_enc(b.tokens, b.lengths)[b.back]
    gradients = tables[0].gradients(m.img_enc) | tables[1].gradients(m.txt_enc)
    return Result(images @ captions.T, {"loss": loss.item()}, gradients, both(evaluation, one_hot))
