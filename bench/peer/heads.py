"""Alignment heads: an MLP per modality over frozen features, contrast within the batch.

Shape letters: B batch, E width of the features, H hidden width, C channels.
"""
import torch
import torch.nn.functional as F
from torch import nn

from losses import in_batch
from towers import drop, init, unit

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu}


class MLP(nn.Module):
    """Linear, activation, dropout, linear: (B, E) to (B, C)."""

    def __init__(self, e, h, c, p, activation):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(e, h), nn.Linear(h, c)
        self.p, self.activation = p, ACTIVATIONS[activation]

    def forward(self, x):
        return self.fc2(drop(self.activation(self.fc1(x)), self.p))


class Heads(nn.Module):
    """The training step up to the loss."""

    layouts = ("merged",)

    def __init__(self, c, layout="merged"):
        super().__init__()
        h, dim = c["model"]["heads"], c["model"]["head"]["dim"]
        self.layout, self.settings, self.weight = layout, c, c["objective"]["itc"]["in_batch_weight"]
        self.image_head = MLP(h["in_image"], h["hidden"], dim, h["dropout"], h["activation"])
        self.text_head = MLP(h["in_text"], h["hidden"], dim, h["dropout"], h["activation"])
        self.temperature = nn.Parameter(torch.tensor(float(c["objective"]["itc"]["temperature"])))
        init(self)
        with torch.no_grad():
            self.temperature.fill_(c["objective"]["itc"]["temperature"])

    def random_batch(self):
        b, h = self.settings["train"]["batch_size"], self.settings["model"]["heads"]
        return {"images": torch.randn(b, h["in_image"]), "texts": torch.randn(b, h["in_text"])}

    def forward(self, images, texts):
        loss = in_batch(unit(self.image_head(images)), unit(self.text_head(texts)), self.temperature)
        return self.weight * loss, {"itc_in_batch": loss}

    def after_update(self, out):
        itc = self.settings["objective"]["itc"]
        with torch.no_grad():
            self.temperature.clamp_(itc["temperature_min"], itc["temperature_max"])
