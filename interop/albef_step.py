"""Golden training step of a tiny model in the published layout of ALBEF, for albef_test.go.

A plain PyTorch model whose modules have the names of ALBEF's checkpoints, so that its state
dict reads like one: a vision transformer, a text encoder whose last layers also attend to
the image, momentum twins, queues, and a training step with the passes of the paper one by
one (Li et al. 2021, sections 3.2 and 3.3). Weights are random. It is written from the
paper, knows nothing of the Go code, and has none of ALBEF's.

    python3 -m venv venv && venv/bin/pip install torch numpy safetensors
    venv/bin/python interop/albef_step.py                # from the root of the repository

It writes interop/testdata/albef_step.safetensors. Last run with torch 2.15.
"""

import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

BATCH, QUEUE, DIM = 3, 6, 8
IMAGE, PATCH, WIDTH, BLOCKS, HEADS = 8, 4, 8, 2, 2
VOCAB, WORDS, HIDDEN, TEXT_LAYERS, FUSION_LAYERS, POSITIONS = 24, 5, 12, 2, 1, 7
PAD, CLS, MASK = 0, 2, 4
ALPHA, MOMENTUM = 0.4, 0.995
RATE, DECAY = 1e-4, 0.1


class Residual(nn.Module):
    """A linear layer whose result is added to what came before, then a layer norm."""

    def __init__(self, inputs):
        super().__init__()
        self.dense = nn.Linear(inputs, HIDDEN)
        self.LayerNorm = nn.LayerNorm(HIDDEN, eps=1e-12)

    def forward(self, x, before):
        return self.LayerNorm(before + self.dense(x))


def attend(q, k, v, keep=None):
    """Attention in HEADS heads; keep (B, L) is 1 for keys that are read."""
    q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (q, k, v))
    score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if keep is not None:
        score = score - 10000.0 * (1 - keep[:, None, None, :])
    return (score.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Projections(nn.Module):
    """Queries of one sequence, keys and values of another of its own width."""

    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.key = nn.Linear(width, HIDDEN)
        self.value = nn.Linear(width, HIDDEN)


class Attention(nn.Module):
    def __init__(self, width=HIDDEN):
        super().__init__()
        self.self = Projections(width)
        self.output = Residual(HIDDEN)

    def forward(self, x, other, keep=None):
        return self.output(attend(self.self.query(x), self.self.key(other), self.self.value(other), keep), x)


class TextLayer(nn.Module):
    def __init__(self, fuses):
        super().__init__()
        self.attention = Attention()
        if fuses:
            self.crossattention = Attention(WIDTH)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(HIDDEN, 4 * HIDDEN)})
        self.output = Residual(4 * HIDDEN)

    def forward(self, x, keep, image=None):
        x = self.attention(x, x, keep)
        if image is not None:
            x = self.crossattention(x, image)
        return self.output(F.gelu(self.intermediate["dense"](x)), x)


class TextEncoder(nn.Module):
    """Embeddings, text layers, fusion layers and the head of masked language modelling."""

    def __init__(self):
        super().__init__()
        embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(VOCAB, HIDDEN, padding_idx=PAD),
                "position_embeddings": nn.Embedding(POSITIONS, HIDDEN),
                "token_type_embeddings": nn.Embedding(2, HIDDEN),
                "LayerNorm": nn.LayerNorm(HIDDEN, eps=1e-12),
            }
        )
        layers = nn.ModuleList(TextLayer(i >= TEXT_LAYERS) for i in range(TEXT_LAYERS + FUSION_LAYERS))
        self.bert = nn.ModuleDict({"embeddings": embeddings, "encoder": nn.ModuleDict({"layer": layers})})
        transform = nn.ModuleDict({"dense": nn.Linear(HIDDEN, HIDDEN), "LayerNorm": nn.LayerNorm(HIDDEN, eps=1e-12)})
        predictions = nn.ModuleDict({"transform": transform})
        predictions.bias = nn.Parameter(torch.zeros(VOCAB))
        self.cls = nn.ModuleDict({"predictions": predictions})

    def text(self, ids, keep):
        e = self.bert["embeddings"]
        x = e["word_embeddings"](ids) + e["position_embeddings"].weight[: ids.shape[1]] + e["token_type_embeddings"].weight[0]
        x = e["LayerNorm"](x)
        for layer in self.bert["encoder"]["layer"][:TEXT_LAYERS]:
            x = layer(x, keep)
        return x

    def fuse(self, x, keep, image):
        for layer in self.bert["encoder"]["layer"][TEXT_LAYERS:]:
            x = layer(x, keep, image)
        return x

    def predict(self, x):
        head = self.cls["predictions"]
        x = head["transform"]["LayerNorm"](F.gelu(head["transform"]["dense"](x)))
        return x @ self.bert["embeddings"]["word_embeddings"].weight.T + head.bias


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(WIDTH, 3 * WIDTH), "proj": nn.Linear(WIDTH, WIDTH)})
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(WIDTH, 4 * WIDTH), "fc2": nn.Linear(4 * WIDTH, WIDTH)})

    def forward(self, x):
        x = x + self.attn["proj"](attend(*self.attn["qkv"](self.norm1(x)).chunk(3, -1)))
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class VisualEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(torch.zeros(1, (IMAGE // PATCH) ** 2 + 1, WIDTH))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)})
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)

    def forward(self, images):
        x = self.patch_embed["proj"](images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        for twin in ("", "_m"):
            setattr(self, "visual_encoder" + twin, VisualEncoder())
            setattr(self, "text_encoder" + twin, TextEncoder())
            setattr(self, "vision_proj" + twin, nn.Linear(WIDTH, DIM))
            setattr(self, "text_proj" + twin, nn.Linear(HIDDEN, DIM))
        self.itm_head = nn.Linear(HIDDEN, 2)
        self.temp = nn.Parameter(torch.tensor(0.01))
        self.register_buffer("image_queue", torch.zeros(DIM, QUEUE))
        self.register_buffer("text_queue", torch.zeros(DIM, QUEUE))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    def online(self):
        """The parameters that are trained, by name."""
        return {name: p for name, p in self.named_parameters() if not name.partition(".")[0].endswith("_m")}

    @torch.no_grad()
    def move_twins(self):
        for name, p in self.online().items():
            part, _, rest = name.partition(".")
            if hasattr(self, part + "_m"):
                twin = self.get_parameter(f"{part}_m.{rest}")
                twin.copy_(MOMENTUM * twin + (1 - MOMENTUM) * p)

    def enqueue(self, images, texts):
        at = int(self.queue_ptr)
        self.image_queue[:, at : at + BATCH], self.text_queue[:, at : at + BATCH] = images.T, texts.T
        self.queue_ptr[0] = (at + BATCH) % QUEUE


def feature(proj, states):
    return F.normalize(proj(states[:, 0]), dim=-1)


def soft_cross_entropy(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def hardest(logits):
    """The negative of each row of the batch. The law is a draw from the softmax with the
    positive left out: here it has one outcome, so that two programs draw the same."""
    law = logits[:, :BATCH].softmax(-1).fill_diagonal_(0)
    law = law / law.sum(-1, keepdim=True)
    assert law.max(-1).values.min() > 1 - 1e-4, law
    return law.argmax(-1)


def losses(m, b):
    """Contrast, matching and masked language modelling of one forward pass."""
    with torch.no_grad():
        m.temp.clamp_(0.001, 0.5)
    image, text = m.visual_encoder(b["images"]), m.text_encoder.text(b["ids"], b["keep"])
    fi, ft = feature(m.vision_proj, image), feature(m.text_proj, text)
    with torch.no_grad():
        m.move_twins()
        image_m, text_m = m.visual_encoder_m(b["images"]), m.text_encoder_m.text(b["ids"], b["keep"])
        gi, gt = feature(m.vision_proj_m, image_m), feature(m.text_proj_m, text_m)
        images, texts = torch.cat([gi.T, m.image_queue], 1), torch.cat([gt.T, m.text_queue], 1)
        pairs = torch.eye(BATCH, BATCH + QUEUE)
        want_i2t = ALPHA * (gi @ texts / m.temp).softmax(-1) + (1 - ALPHA) * pairs
        want_t2i = ALPHA * (gt @ images / m.temp).softmax(-1) + (1 - ALPHA) * pairs
    i2t, t2i = fi @ texts / m.temp, ft @ images / m.temp
    itc = (soft_cross_entropy(i2t, want_i2t) + soft_cross_entropy(t2i, want_t2i)) / 2
    m.enqueue(gi, gt)

    wrong_text, wrong_image = hardest(i2t.detach()), hardest(t2i.detach())
    right = m.text_encoder.fuse(text, b["keep"], image)[:, 0]
    wrong = m.text_encoder.fuse(
        torch.cat([text, text[wrong_text]]), torch.cat([b["keep"], b["keep"][wrong_text]]), torch.cat([image[wrong_image], image])
    )[:, 0]
    itm = F.cross_entropy(m.itm_head(torch.cat([right, wrong])), torch.tensor([1] * BATCH + [0] * 2 * BATCH))

    def words(encoder, image):
        return encoder.predict(encoder.fuse(encoder.text(b["masked"], b["keep"]), b["keep"], image)).flatten(0, 1)

    chosen = b["labels"].flatten() >= 0
    logits = words(m.text_encoder, image)[chosen]
    with torch.no_grad():
        teacher = words(m.text_encoder_m, image_m)[chosen].softmax(-1)
    mlm = (1 - ALPHA) * F.cross_entropy(logits, b["labels"].flatten()[chosen]) + ALPHA * soft_cross_entropy(logits, teacher)
    return {"itc": itc, "itm": itm, "mlm": mlm}


def batch(gen):
    lengths = torch.tensor([5, 3, 4])
    keep = (torch.arange(WORDS) < lengths[:, None]).float()
    ids = torch.randint(5, VOCAB, (BATCH, WORDS), generator=gen) * keep.long()
    ids[:, 0] = CLS
    masked, labels = ids.clone(), torch.full_like(ids, -100)
    for row, place, word in [(0, 2, MASK), (0, 3, PAD), (2, 1, MASK)]:  # [PAD] is a random word
        masked[row, place], labels[row, place] = word, ids[row, place]
    return {"images": torch.randn(BATCH, 3, IMAGE, IMAGE, generator=gen), "ids": ids, "lengths": lengths, "keep": keep, "masked": masked, "labels": labels}


def main():
    gen = torch.Generator().manual_seed(316)
    m, b = Model(), batch(gen)
    with torch.no_grad():
        for name, p in m.named_parameters():
            if name != "temp":
                p.copy_(0.3 * torch.randn(p.shape, generator=gen) + (1 if "orm" in name and name.endswith("weight") else 0))
        for queue in (m.image_queue, m.text_queue):
            queue.copy_(F.normalize(torch.randn(queue.shape, generator=gen), dim=0))
    for name, p in m.named_parameters():
        p.requires_grad_(name in m.online())
    groups = {True: [], False: []}
    for name, p in m.online().items():
        groups[p.dim() != 1 and not name.endswith(".bias")].append(p)
    optimizer = torch.optim.AdamW([{"params": groups[True], "weight_decay": DECAY}, {"params": groups[False], "weight_decay": 0}], lr=RATE)

    out = {"batch/" + k: v for k, v in b.items() if k != "keep"}
    out |= {"before/" + k: v.clone() for k, v in m.state_dict().items()}
    parts = losses(m, b)
    sum(parts.values()).backward()
    optimizer.step()
    again = losses(m, b)  # moves the twins first
    for name, values in [("first", parts), ("second", again)]:
        print(name, {k: round(v.item(), 4) for k, v in values.items()})
        out |= {f"{name}/{k}": v.detach() for k, v in values.items()}
    out |= {"grad/" + k: p.grad for k, p in m.online().items()}
    out |= {"after/" + k: v for k, v in m.state_dict().items()}
    save_file({k: v.clone().contiguous() for k, v in out.items()}, "interop/testdata/albef_step.safetensors")


if __name__ == "__main__":
    main()
