"""ALBEF: both towers, their momentum twins, the fusion layers and three losses.

Shape letters as in towers.py; C channels of the shared space, Q queue entries.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

import towers
from losses import distilled, draw_negatives, gumbel, in_batch, similarities, soft_cross_entropy
from settings import mask_rows
from towers import Picks, attention_mask, bert_of, init, unit, vit_of


class Twinned(nn.Module):
    """What has a momentum twin."""

    def __init__(self, c, vocab):
        super().__init__()
        self.image, self.text = vit_of(c), bert_of(c, vocab)
        self.image_proj = nn.Linear(c["model"]["image"]["width"], c["model"]["head"]["dim"])
        self.text_proj = nn.Linear(c["model"]["text"]["width"], c["model"]["head"]["dim"])


class ALBEF(nn.Module):
    """The training step up to the loss.

    layout "merged" reads clean and masked captions in one pass and fuses all pairs in
    one; an image is projected to keys and values once. "pruned" is merged without the
    work that nobody reads: last layers compute the class tokens and masked places that
    the losses read, and the first self-attention of the fusion layers, which has seen no
    image yet, runs once a text. "reference" is the published code's: a pass for clean and
    one for masked captions, one for the pairs of matching (positive and negative,
    concatenated) and one for the masked captions, image tokens gathered before the
    projection.
    """

    layouts = ("merged", "pruned", "reference")

    def __init__(self, c, layout="merged"):
        super().__init__()
        vocab = c["data"]["vocab_size"]
        self.layout, self.settings = layout, c
        self.alpha = c["objective"]["distill"]["alpha"]
        self.weights = {k: c["objective"][k]["weight"] for k in ("itc", "itm", "mlm")}
        self.weights["itc_in_batch"] = c["objective"]["itc"]["in_batch_weight"]
        self.online = Twinned(c, vocab)
        self.itm_head = nn.Linear(c["model"]["text"]["width"], 2)
        self.temperature = nn.Parameter(torch.tensor(float(c["objective"]["itc"]["temperature"])))
        init(self.online)
        self.teacher = copy.deepcopy(self.online).requires_grad_(False)
        q, dim = c["queue"]["size"], c["model"]["head"]["dim"]
        self.register_buffer("image_queue", F.normalize(torch.randn(q, dim), dim=-1).to(towers.DTYPE))
        self.register_buffer("text_queue", F.normalize(torch.randn(q, dim), dim=-1).to(towers.DTYPE))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.int64))  # on the device, which nobody waits for
        self.twins = list(self.teacher.parameters()), list(self.online.parameters())

    def random_batch(self):
        c = self.settings
        b, l, s, v = c["train"]["batch_size"], c["data"]["tokens"], c["model"]["image"]["size"], c["data"]["vocab_size"]
        tokens = torch.randint(v, (b, l))
        m = mask_rows(b, l, c["objective"]["mlm"]["prob"])
        places = torch.arange(m) * b * l // m
        batch = {
            "images": torch.randn(b, 3, s, s), "tokens": tokens, "masked": tokens.clone(),
            "lengths": torch.full((b,), l), "places": places, "labels": tokens.flatten()[places],
        }
        if self.layout == "pruned":
            batch["read"] = Picks.places(places, b, l)
        return batch

    def forward(self, images, tokens, masked, lengths, places, labels, read=None, noise=None, filled=None):
        """Loss, its parts, and the teacher's features (B, C) for the queue.

        read: Picks of the places, for the layout "pruned", which makes them of places if None.
        """
        on, te = self.online, self.teacher
        b, l = tokens.shape
        own, mask = torch.arange(b, device=tokens.device), attention_mask(lengths, l)
        merged, pruned = self.layout != "reference", self.layout == "pruned"
        both, mask2 = torch.cat([tokens, masked]), mask.repeat(2, 1, 1, 1)
        if noise is None:
            noise = gumbel(b, tokens.device)
        if pruned and read is None:
            read = Picks.places(places, b, l)

        image = on.image(images)  # (B, T, D)
        text = on.text.text(both, mask2) if merged else on.text.text(tokens, mask)  # (2B or B, L, D)
        fi, ft = unit(on.image_proj(image[:, 0])), unit(on.text_proj(text[:b, 0]))
        with torch.no_grad():
            image_m = te.image(images)
            if pruned:  # class tokens of clean captions, all tokens of masked ones
                picks = Picks.first(b, l, tokens.device).then(Picks.all(b, l, tokens.device), b, l)
                states_m = te.text.text(both, mask2, picks)
                first_m, masked_m = states_m[:b], states_m[b:].view(b, l, -1)
            else:
                text_m = te.text.text(both, mask2) if merged else te.text.text(tokens, mask)
                first_m, masked_m = text_m[:b, 0], text_m[b:] if merged else te.text.text(masked, mask)
            fim, ftm = unit(te.image_proj(image_m[:, 0])), unit(te.text_proj(first_m))
            image_queue, text_queue = self.image_queue[:filled], self.text_queue[:filled]
            y_i2t = distilled(similarities(fim, ftm, text_queue, self.temperature), own, self.alpha)
            y_t2i = distilled(similarities(ftm, fim, image_queue, self.temperature), own, self.alpha)
        i2t = similarities(fi, ftm, text_queue, self.temperature)  # (B, B+Q)
        t2i = similarities(ft, fim, image_queue, self.temperature)
        parts = {"itc": (soft_cross_entropy(i2t, y_i2t) + soft_cross_entropy(t2i, y_t2i)) / 2}
        del y_i2t, y_t2i
        if self.weights["itc_in_batch"]:
            parts["itc_in_batch"] = in_batch(fi, ft, self.temperature)

        with torch.no_grad():
            neg_text, neg_image = draw_negatives(i2t, noise[0]), draw_negatives(t2i, noise[1])
        texts, pictures = torch.cat([own, own, neg_text]), torch.cat([own, neg_image, own])
        if merged:
            texts, pictures = torch.cat([texts, own + b]), torch.cat([pictures, own])
        if pruned:
            picks = Picks.first(3 * b, l, tokens.device).then(read, 3 * b, l)
            fused = on.text.fusion(text, mask2, image, pictures, texts, picks)
            first, states = fused[: 3 * b], fused[3 * b :]
        elif merged:
            fused = on.text.fusion(text.index_select(0, texts), mask2.index_select(0, texts), image, pictures)
            first, states = fused[: 3 * b, 0], fused[3 * b :].flatten(0, 1).index_select(0, places)
        else:
            first = on.text.fusion(text.index_select(0, texts), mask.index_select(0, texts), image.index_select(0, pictures))[:, 0]
            states = on.text.fusion(on.text.text(masked, mask), mask, image).flatten(0, 1).index_select(0, places)
        match = torch.zeros(3 * b, dtype=torch.int64, device=tokens.device)
        match[:b] = 1
        parts["itm"] = F.cross_entropy(self.itm_head(first).float(), match)

        with torch.no_grad():
            states_m = te.text.fusion(masked_m, mask, image_m, picks=read if pruned else None)
            if not pruned:
                states_m = states_m.flatten(0, 1).index_select(0, places)
            y = distilled(te.text.predict(states_m).float(), labels, self.alpha)
        parts["mlm"] = soft_cross_entropy(on.text.predict(states).float(), y)
        return sum(self.weights[k] * v for k, v in parts.items()), parts, fim, ftm

    def after_update(self, out):
        """Temperature clamp, moving average and queue, after the optimiser's update."""
        itc = self.settings["objective"]["itc"]
        with torch.no_grad():
            self.temperature.clamp_(itc["temperature_min"], itc["temperature_max"])
            torch._foreach_lerp_(*self.twins, 1 - self.settings["momentum"]["m"])
            self.enqueue(*out[2:])

    def enqueue(self, image, text):
        """Writes features (B, C) at the pointer, wrapping around."""
        q = self.image_queue.shape[0]
        at = (torch.arange(len(image), device=image.device) + self.pointer) % q
        self.image_queue[at], self.text_queue[at] = image.to(self.image_queue.dtype), text.to(self.text_queue.dtype)
        self.pointer.add_(len(image)).remainder_(q)
