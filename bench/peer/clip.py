"""A dual encoder: both towers and contrast within the batch."""
import torch
from torch import nn

from losses import in_batch
from towers import Picks, attention_mask, bert_of, init, unit, vit_of


class CLIP(nn.Module):
    """The training step up to the loss.

    layout "pruned" computes the last block of both towers for the class tokens only,
    whose features are all that the loss reads.
    """

    layouts = ("merged", "pruned")

    def __init__(self, c, layout="merged"):
        super().__init__()
        m = c["model"]
        if m["text"]["fusion_layers"] or c["queue"]["size"]:
            raise SystemExit("a dual encoder has no fusion layers and no queue here: set model.text.fusion_layers and queue.size to 0")
        self.layout, self.pruned, self.settings = layout, layout == "pruned", c
        self.weight = c["objective"]["itc"]["in_batch_weight"]
        self.image, self.text = vit_of(c), bert_of(c, c["data"]["vocab_size"], mlm=False)
        self.image_proj = nn.Linear(m["image"]["width"], m["head"]["dim"])
        self.text_proj = nn.Linear(m["text"]["width"], m["head"]["dim"])
        self.temperature = nn.Parameter(torch.tensor(float(c["objective"]["itc"]["temperature"])))
        init(self)
        with torch.no_grad():
            self.temperature.fill_(c["objective"]["itc"]["temperature"])

    def random_batch(self):
        c = self.settings
        b, l, s = c["train"]["batch_size"], c["data"]["tokens"], c["model"]["image"]["size"]
        return {"images": torch.randn(b, 3, s, s), "tokens": torch.randint(c["data"]["vocab_size"], (b, l)), "lengths": torch.full((b,), l)}

    def forward(self, images, tokens, lengths):
        b, l = tokens.shape
        mask = attention_mask(lengths, l)
        image = self.image.class_token(images, self.pruned)  # (B, D)
        picks = Picks.first(b, l, tokens.device) if self.pruned else None
        text = self.text.text(tokens, mask, picks) if self.pruned else self.text.text(tokens, mask)[:, 0]
        loss = in_batch(unit(self.image_proj(image)), unit(self.text_proj(text)), self.temperature)
        return self.weight * loss, {"itc_in_batch": loss}

    def after_update(self, out):
        itc = self.settings["objective"]["itc"]
        with torch.no_grad():
            self.temperature.clamp_(itc["temperature_min"], itc["temperature_max"])
