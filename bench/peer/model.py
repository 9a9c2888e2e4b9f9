"""ALBEF in PyTorch: the towers, the fusion layers, the losses.

The modules carry the parameter names of geoalign with "." for "/", so that the weights
of one side load into the other. Shape letters: B batch, L tokens of a text, T tokens of
an image, D width, C channels of the shared space, Q queue entries, V vocabulary, M rows
of the language-modelling loss.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

DROPOUT = "bits"  # or "native", see drop


class _BitDropout(torch.autograd.Function):
    """Dropout whose mask takes 16 random bits an element and is kept as one byte.

    torch's own on a CPU draws one number of the generator an element, on one thread,
    and keeps a mask of floats. The probability is rounded to 1/65536.
    """

    @staticmethod
    def forward(ctx, x, p):
        n = x.numel()
        bits = torch.empty((n + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        mask = (bits.view(torch.int16)[:n] < round(p * 65536) - 32768).view(x.shape)
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - p)
        return x.masked_fill(mask, 0).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g.masked_fill(mask, 0).mul_(ctx.scale), None


def drop(x, p):
    if p == 0:
        return x
    if DROPOUT == "bits":
        return _BitDropout.apply(x, p)
    return F.dropout(x, p)


def attend(q, k, v, heads, mask=None, p=0.0):
    """Attention of q (R, L, D) over k and v (R, T, D); mask (R, 1, 1, T) is added."""

    def split(x):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)  # (R, heads, L, D/heads)

    q, k, v = split(q), split(k), split(v)
    if p > 0 and DROPOUT == "bits":
        # On a CPU scaled_dot_product_attention is fused without dropout only; with it,
        # it does these very steps with torch's dropout.
        s = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
        if mask is not None:
            s = s + mask
        o = drop(s.softmax(-1), p) @ v
    else:
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
    return o.transpose(1, 2).flatten(2)


class ViTBlock(nn.Module):
    def __init__(self, d, heads, mlp):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d, 1e-6), nn.LayerNorm(d, 1e-6)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(d, 3 * d), "proj": nn.Linear(d, d)})
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(d, mlp), "fc2": nn.Linear(mlp, d)})

    def forward(self, x):
        q, k, v = self.attn["qkv"](self.norm1(x)).chunk(3, -1)
        x = x + self.attn["proj"](attend(q, k, v, self.heads))
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class ViT(nn.Module):
    """Images (B, 3, S, S) to tokens (B, T, D), class token first."""

    def __init__(self, size, patch, depth, width, heads, mlp):
        super().__init__()
        self.patch = patch
        self.patch_embed = nn.Linear(3 * patch * patch, width)
        self.cls_token = nn.Parameter(torch.empty(width))
        self.pos_embed = nn.Parameter(torch.empty((size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(ViTBlock(width, heads, mlp) for _ in range(depth))
        self.norm = nn.LayerNorm(width, 1e-6)

    def forward(self, x):
        b, p, g = x.shape[0], self.patch, x.shape[-1] // self.patch
        # A convolution with stride = kernel is one matrix product of the patches.
        x = x.view(b, 3, g, p, g, p).permute(0, 2, 4, 1, 3, 5).reshape(b, g * g, -1)
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(b, 1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Output(nn.Module):
    """BERT's block end: LN(x + dropout(dense(h)))."""

    def __init__(self, d_in, d, p, **dense):
        super().__init__()
        for name, shape in dense.items():
            setattr(self, name, nn.Linear(*shape))
        self.output = nn.Linear(d_in, d)
        self.norm = nn.LayerNorm(d, 1e-12)
        self.p = p

    def forward(self, h, x):
        return self.norm(drop(self.output(h), self.p) + x)


class BERTLayer(nn.Module):
    def __init__(self, d, heads, mlp, p, image_width=None):
        super().__init__()
        self.heads, self.p = heads, p
        self.attention = Output(d, d, p, qkv=(d, 3 * d))
        if image_width is not None:
            self.crossattention = Output(d, d, p, query=(d, d), kv=(image_width, 2 * d))
        self.ffn = Output(mlp, d, p, intermediate=(d, mlp))

    def forward(self, x, mask, image=None, index=None):
        """x (R, L, D); image (N, T, Dimage) with N = R, or row index[r] for text r."""
        q, k, v = self.attention.qkv(x).chunk(3, -1)
        x = self.attention(attend(q, k, v, self.heads, mask, self.p), x)
        if image is not None:
            kv = self.crossattention.kv(image)
            if index is not None:
                kv = kv.index_select(0, index)
            k, v = kv.chunk(2, -1)
            h = attend(self.crossattention.query(x), k, v, self.heads, None, self.p)
            x = self.crossattention(h, x)
        return self.ffn(F.gelu(self.ffn.intermediate(x)), x)


class Embeddings(nn.Module):
    def __init__(self, vocab, positions, d):
        super().__init__()
        self.word, self.position, self.token_type = nn.Embedding(vocab, d), nn.Embedding(positions, d), nn.Embedding(2, d)
        self.norm = nn.LayerNorm(d, 1e-12)

    def forward(self, ids):
        rest = self.position.weight[: ids.shape[1]] + self.token_type.weight[0]
        return self.norm(self.word(ids) + rest)


class MLMHead(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.dense, self.norm = nn.Linear(d, d), nn.LayerNorm(d, 1e-12)
        self.bias = nn.Parameter(torch.empty(vocab))

    def forward(self, x, word):
        return F.linear(self.norm(F.gelu(self.dense(x))), word, self.bias)


class BERT(nn.Module):
    def __init__(self, vocab, positions, layers, fusion_layers, width, heads, mlp, p, image_width):
        super().__init__()
        self.text_layers, self.p = layers, p
        self.embeddings = Embeddings(vocab, positions, width)
        self.layers = nn.ModuleList(
            BERTLayer(width, heads, mlp, p, image_width if i >= layers else None) for i in range(layers + fusion_layers)
        )
        self.mlm = MLMHead(vocab, width)

    def text(self, ids, mask):
        x = drop(self.embeddings(ids), self.p)
        for layer in self.layers[: self.text_layers]:
            x = layer(x, mask)
        return x

    def fusion(self, x, mask, image, index=None):
        for layer in self.layers[self.text_layers :]:
            x = layer(x, mask, image, index)
        return x

    def predict(self, x, places):
        """Vocabulary logits (M, V) of rows places of x (R, L, D)."""
        return self.mlm(x.flatten(0, 1).index_select(0, places), self.embeddings.word.weight)


class Towers(nn.Module):
    """What has a momentum twin."""

    def __init__(self, c, vocab):
        super().__init__()
        i, t = c["model"]["image"], c["model"]["text"]
        self.image = ViT(i["size"], i["patch"], i["depth"], i["width"], i["heads"], i["mlp"] or 4 * i["width"])
        self.text = BERT(vocab, t["positions"], t["layers"], t["fusion_layers"], t["width"], t["heads"],
                         t["mlp"] or 4 * t["width"], t["dropout"], i["width"])
        self.image_proj = nn.Linear(i["width"], c["model"]["head"]["dim"])
        self.text_proj = nn.Linear(t["width"], c["model"]["head"]["dim"])


def soft_cross_entropy(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def distilled(teacher, labels, alpha):
    """alpha * softmax(teacher) + (1 - alpha) * one-hot labels."""
    y = teacher.softmax(-1).mul_(alpha)
    return y.scatter_add_(1, labels[:, None], y.new_full((len(labels), 1), 1 - alpha))


def draw_negatives(logits, noise):
    """For each row another index of the batch, drawn by similarity."""
    b = logits.shape[0]
    w = (logits[:, :b].softmax(-1) + 1e-4).fill_diagonal_(0)
    return (w.log() + noise).argmax(-1)


def gumbel(b):
    return -torch.empty(2, b, b).exponential_().log_()


class ALBEF(nn.Module):
    """The training step up to the loss.

    layout "merged" reads clean and masked captions in one pass and fuses all pairs in
    one; an image is projected to keys and values once. layout "reference" is the
    published code's: a pass for clean and one for masked captions, one for the pairs of
    matching (positive and negative, concatenated) and one for the masked captions, image
    tokens gathered before the projection.
    """

    def __init__(self, c, vocab, layout="merged"):
        super().__init__()
        self.layout = layout
        self.weights = {k: c["objective"][k]["weight"] for k in ("itc", "itm", "mlm")}
        self.in_batch = c["objective"]["itc"]["in_batch_weight"]
        self.online = Towers(c, vocab)
        self.itm_head = nn.Linear(c["model"]["text"]["width"], 2)
        self.temperature = nn.Parameter(torch.tensor(float(c["objective"]["itc"]["temperature"])))
        self.init()
        self.teacher = copy.deepcopy(self.online).requires_grad_(False)
        q, dim = c["queue"]["size"], c["model"]["head"]["dim"]
        self.register_buffer("image_queue", F.normalize(torch.randn(q, dim), dim=-1))
        self.register_buffer("text_queue", F.normalize(torch.randn(q, dim), dim=-1))
        self.pointer = 0

    @torch.no_grad()
    def init(self):
        for name, p in self.online.named_parameters():
            norm = name.split(".")[-2].startswith("norm")
            if name.endswith("weight") and norm:
                p.fill_(1)
            elif name.endswith("bias"):
                p.zero_()
            else:
                p.normal_(0, 0.02)

    def forward(self, images, tokens, masked, lengths, places, labels, alpha, noise, filled=None):
        """Loss, its parts, and the teacher's features (B, C) for the queue."""
        on, te = self.online, self.teacher
        b, l = tokens.shape
        mask = torch.zeros(b, 1, 1, l).masked_fill_(torch.arange(l) >= lengths[:, None, None, None], float("-inf"))
        merged = self.layout == "merged"
        both, mask2 = torch.cat([tokens, masked]), mask.repeat(2, 1, 1, 1)

        image = on.image(images)  # (B, T, D)
        text = on.text.text(both, mask2) if merged else on.text.text(tokens, mask)  # (2B or B, L, D)
        fi, ft = F.normalize(on.image_proj(image[:, 0]), dim=-1), F.normalize(on.text_proj(text[:b, 0]), dim=-1)
        with torch.no_grad():
            image_m = te.image(images)
            text_m = te.text.text(both, mask2) if merged else te.text.text(tokens, mask)
            fim = F.normalize(te.image_proj(image_m[:, 0]), dim=-1)
            ftm = F.normalize(te.text_proj(text_m[:b, 0]), dim=-1)
            keys_t, keys_i = torch.cat([ftm, self.text_queue[:filled]]), torch.cat([fim, self.image_queue[:filled]])
            own = torch.arange(b)
            y_i2t = distilled(fim @ keys_t.T / self.temperature, own, alpha)
            y_t2i = distilled(ftm @ keys_i.T / self.temperature, own, alpha)
        i2t, t2i = fi @ keys_t.T / self.temperature, ft @ keys_i.T / self.temperature  # (B, B+Q)
        parts = {"itc": (soft_cross_entropy(i2t, y_i2t) + soft_cross_entropy(t2i, y_t2i)) / 2}
        if self.in_batch:
            s = fi @ ft.T / self.temperature
            parts["itc_in_batch"] = (F.cross_entropy(s, own) + F.cross_entropy(s.T, own)) / 2

        with torch.no_grad():
            neg_text, neg_image = draw_negatives(i2t, noise[0]), draw_negatives(t2i, noise[1])
        texts, pictures = torch.cat([own, own, neg_text]), torch.cat([own, neg_image, own])
        if merged:
            texts, pictures = torch.cat([texts, own + b]), torch.cat([pictures, own])
            fused = on.text.fusion(text.index_select(0, texts), mask2.index_select(0, texts), image, pictures)
            logits = on.text.predict(fused[3 * b :], places)
        else:
            fused = on.text.fusion(text.index_select(0, texts), mask.index_select(0, texts), image.index_select(0, pictures))
            logits = on.text.predict(on.text.fusion(on.text.text(masked, mask), mask, image), places)
        match = torch.zeros(3 * b, dtype=torch.int64)
        match[:b] = 1
        parts["itm"] = F.cross_entropy(self.itm_head(fused[: 3 * b, 0]), match)

        with torch.no_grad():
            masked_m = text_m[b:] if merged else te.text.text(masked, mask)
            y = distilled(te.text.predict(te.text.fusion(masked_m, mask, image_m), places), labels, alpha)
        parts["mlm"] = soft_cross_entropy(logits, y)

        weights = dict(self.weights, itc_in_batch=self.in_batch)
        return sum(weights[k] * v for k, v in parts.items()), parts, fim, ftm

    @torch.no_grad()
    def enqueue(self, image, text):
        """Writes features at the pointer, wrapping around."""
        q = self.image_queue.shape[0]
        at = (torch.arange(len(image)) + self.pointer) % q
        self.image_queue[at], self.text_queue[at] = image, text
        self.pointer = (self.pointer + len(image)) % q

    def compile_blocks(self):
        """Compiles every kind of layer once and for all its instances."""
        torch._dynamo.config.recompile_limit = 64
        for m in self.modules():
            if isinstance(m, (ViTBlock, BERTLayer, Embeddings, MLMHead)):
                m.compile(dynamic=False)
