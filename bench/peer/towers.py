"""Layers and towers in PyTorch.

The modules carry the parameter names of geoalign with "." for "/", so that the weights
of one side load into the other. Shape letters: B batch, R rows (texts), L tokens of a
text, T tokens of an image, D width, S selected tokens, M rows of the language-modelling
loss, V vocabulary.

In bf16 the modules run under torch.autocast with 32-bit weights. DTYPE is then the type
of what flows between the layers.
"""
import dataclasses

import numpy
import torch
import torch.nn.functional as F
from torch import nn

DROPOUT = "bits"  # or "native", see drop
ATTENTION = "fastest"  # or "fused", see attend
DTYPE = torch.float32
BITS = numpy.random.SFC64(1)


class _BitDropout(torch.autograd.Function):
    """Dropout whose mask takes 16 random bits an element and is kept as one byte.

    torch's own on a CPU draws one number of the generator an element, on one thread,
    and keeps a mask of the type of x. The probability is rounded to 1/65536. Bytes are
    used because comparisons to and products with torch.bool are several times slower.
    """

    @staticmethod
    def forward(ctx, x, p):
        bits = torch.from_numpy(BITS.random_raw((x.numel() + 3) // 4).view("int16"))[: x.numel()].view(x.shape)
        mask = torch.ge(bits, round(p * 65536) - 32768, out=torch.empty(x.shape, dtype=torch.uint8))
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - p)
        return torch.addcmul(x.new_zeros(()), x, mask.to(x.dtype), value=ctx.scale)

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return torch.addcmul(g.new_zeros(()), g, mask.to(g.dtype), value=ctx.scale), None


def drop(x, p):
    if p == 0:
        return x
    if DROPOUT == "bits":
        return _BitDropout.apply(x, p)
    return F.dropout(x, p)


def attend(q, k, v, heads, mask=None, p=0.0):
    """Attention of q (R, L, D) over k and v (R, T, D); mask (R, 1, 1, T) is added.

    scaled_dot_product_attention is fused on a CPU without dropout only, and in bf16 its
    backward pass takes several times as long as the products written out. On a CUDA device
    it is always fused. The mask may have more columns than keys, see attention_mask.
    """
    r, l, d = q.shape
    if mask is not None:
        mask = mask.to(q.dtype)[..., : k.shape[1]]
    if ATTENTION == "fused" or q.is_cuda or p == 0 and q.dtype == torch.float32:
        q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))  # (R, heads, L, D/heads)
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        return o.transpose(1, 2).flatten(2)
    e = d // heads
    q, k, v = (x.unflatten(-1, (heads, e)).transpose(1, 2).reshape(r * heads, -1, e) for x in (q, k, v))
    if mask is None:
        s = torch.baddbmm(q.new_zeros(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=e**-0.5)
    else:
        mask = mask.expand(r, heads, 1, -1).reshape(r * heads, 1, -1)
        s = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=e**-0.5)
    o = drop(s.softmax(-1), p) @ v
    return o.view(r, heads, l, e).transpose(1, 2).flatten(2)


@dataclasses.dataclass
class Picks:
    """Tokens of R texts that a last layer is computed for; the others are keys only.

    ids (S) are places in the flat tokens (R*L). groups (rows from, rows to, queries a row,
    slots) cut them into attention with equally many queries a row; slots, if not None, are
    the places of the group's tokens among its rows * queries, the rest of which is empty.
    """

    ids: torch.Tensor
    groups: list

    @staticmethod
    def first(rows, l, device):
        return Picks(torch.arange(rows, device=device) * l, [(0, rows, 1, None)])

    @staticmethod
    def all(rows, l, device):
        return Picks(torch.arange(rows * l, device=device), [(0, rows, l, None)])

    @staticmethod
    def places(places, rows, l):
        """Flat places (S) of texts of l tokens, in any order. Waits for the device that they are on."""
        row = places // l
        count = torch.bincount(row, minlength=rows)
        order = row.argsort(stable=True)
        rank = torch.empty_like(row)
        rank[order] = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[row[order]]
        k = max(int(count.max()), 1)
        return Picks(places, [(0, rows, k, row * k + rank)])

    def then(self, other, rows, l):
        """These tokens of rows texts, followed by other of further texts."""
        more = [(lo + rows, hi + rows, k, slots) for lo, hi, k, slots in other.groups]
        return Picks(torch.cat([self.ids, other.ids + rows * l]), self.groups + more)

    def take(self, x):
        """x (R, L, D) to (S, D)"""
        return x.flatten(0, 1).index_select(0, self.ids)

    def attend(self, q, k, v, heads, mask=None, p=0.0):
        """Attention of the picked queries q (S, D) over k and v (R, T, D): (S, D)."""
        out, at = [], 0
        for lo, hi, n, slots in self.groups:
            rows = hi - lo
            here = q[at : at + (rows * n if slots is None else len(slots))]
            at += len(here)
            if slots is not None:
                here = here.new_zeros(rows * n, here.shape[1]).index_copy(0, slots, here)
            o = attend(here.view(rows, n, -1), k[lo:hi], v[lo:hi], heads, None if mask is None else mask[lo:hi], p).flatten(0, 1)
            out.append(o if slots is None else o.index_select(0, slots))
        return torch.cat(out) if len(out) > 1 else out[0]


def project(linear, x, lo, hi):
    """The rows lo to hi of a linear layer."""
    return F.linear(x, linear.weight[lo:hi], linear.bias[lo:hi])


class Norm(nn.LayerNorm):
    """LayerNorm whose result has the type of its input, statistics in 32 bits.

    On a CUDA device autocast would make the input 32 bits wide and leave the result so, which
    takes two casts of the states and several times the traffic.
    """

    def forward(self, x):
        if not x.is_cuda or DTYPE == torch.float32:
            return super().forward(x)
        with torch.autocast("cuda", enabled=False):
            return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class ViTBlock(nn.Module):
    def __init__(self, d, heads, mlp):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = Norm(d, 1e-6), Norm(d, 1e-6)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(d, 3 * d), "proj": nn.Linear(d, d)})
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(d, mlp), "fc2": nn.Linear(mlp, d)})

    def forward(self, x, class_only=False):
        """x (B, T, D); class_only gives the class token (B, D)."""
        h, qkv = self.norm1(x), self.attn["qkv"]
        if class_only:
            d, picks = x.shape[-1], Picks.first(*x.shape[:2], x.device)
            k, v = project(qkv, h, d, 3 * d).chunk(2, -1)
            h, x = picks.attend(project(qkv, h[:, 0], 0, d), k, v, self.heads), x[:, 0]
        else:
            q, k, v = qkv(h).chunk(3, -1)
            h = attend(q, k, v, self.heads)
        x = x + self.attn["proj"](h)
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
        self.norm = Norm(width, 1e-6)

    def embed(self, x):
        b, p, g = x.shape[0], self.patch, x.shape[-1] // self.patch
        # A convolution with stride = kernel is one matrix product of the patches.
        x = x.view(b, 3, g, p, g, p).permute(0, 2, 4, 1, 3, 5).reshape(b, g * g, -1)
        x = self.patch_embed(x)
        return (torch.cat([self.cls_token.to(x.dtype).expand(b, 1, -1), x], 1) + self.pos_embed).to(DTYPE)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def class_token(self, x, pruned):
        """The class token (B, D) alone; pruned: the last block is computed for nothing else."""
        x = self.embed(x)
        for block in self.blocks[:-1]:
            x = block(x)
        x = self.blocks[-1](x, True) if pruned else self.blocks[-1](x)[:, 0]
        return self.norm(x)


class Output(nn.Module):
    """BERT's block end: LN(x + dropout(dense(h)))."""

    def __init__(self, d_in, d, p, **dense):
        super().__init__()
        for name, shape in dense.items():
            setattr(self, name, nn.Linear(*shape))
        self.output = nn.Linear(d_in, d)
        self.norm = Norm(d, 1e-12)
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

    def forward(self, x, mask, image=None, index=None, texts=None, picks=None):
        """x (R, L, D); image (N, T, Dimage) with N = R, or row index[r] for text r.

        texts: self-attention is computed on x as it is, then its rows are gathered.
        picks: the result is that of the picked tokens, (S, D).
        """
        qkv = self.attention.qkv
        if picks is not None and texts is None:
            d = x.shape[-1]
            k, v = project(qkv, x, d, 3 * d).chunk(2, -1)
            x = picks.take(x)
            x = self.attention(picks.attend(project(qkv, x, 0, d), k, v, self.heads, mask, self.p), x)
        else:
            q, k, v = qkv(x).chunk(3, -1)
            x = self.attention(attend(q, k, v, self.heads, mask, self.p), x)
            if texts is not None:
                x = x.index_select(0, texts)
            if picks is not None:
                x = picks.take(x)
        if image is not None:
            kv = self.crossattention.kv(image)
            if index is not None:
                kv = kv.index_select(0, index)
            k, v = kv.chunk(2, -1)
            q = self.crossattention.query(x)
            h = attend(q, k, v, self.heads, None, self.p) if picks is None else picks.attend(q, k, v, self.heads, None, self.p)
            x = self.crossattention(h, x)
        return self.ffn(F.gelu(self.ffn.intermediate(x)), x)


class Embeddings(nn.Module):
    def __init__(self, vocab, positions, d):
        super().__init__()
        self.word, self.position, self.token_type = nn.Embedding(vocab, d), nn.Embedding(positions, d), nn.Embedding(2, d)
        self.norm = Norm(d, 1e-12)

    def forward(self, ids):
        rest = self.position.weight[: ids.shape[1]] + self.token_type.weight[0]
        return self.norm(self.word(ids) + rest).to(DTYPE)


class MLMHead(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.dense, self.norm = nn.Linear(d, d), Norm(d, 1e-12)
        self.bias = nn.Parameter(torch.empty(vocab))

    def forward(self, x, word):
        return F.linear(self.norm(F.gelu(self.dense(x))), word, self.bias)


class BERT(nn.Module):
    def __init__(self, vocab, positions, layers, fusion_layers, width, heads, mlp, p, image_width, mlm=True):
        super().__init__()
        self.text_layers, self.p = layers, p
        self.embeddings = Embeddings(vocab, positions, width)
        self.layers = nn.ModuleList(
            BERTLayer(width, heads, mlp, p, image_width if i >= layers else None) for i in range(layers + fusion_layers)
        )
        if mlm:
            self.mlm = MLMHead(vocab, width)

    def text(self, ids, mask, picks=None):
        """States (R, L, D), or with picks those of the picked tokens (S, D)."""
        x = drop(self.embeddings(ids), self.p)
        for layer in self.layers[: self.text_layers - 1]:
            x = layer(x, mask)
        return self.layers[self.text_layers - 1](x, mask, picks=picks)

    def fusion(self, x, mask, image, index=None, texts=None, picks=None):
        """texts: rows of x that the rows of the fusion are; mask and index have a row each.
        The first self-attention is computed before they are gathered, with masks of x."""
        layers = self.layers[self.text_layers :]
        for i, layer in enumerate(layers):
            first, last = i == 0, i == len(layers) - 1
            x = layer(x, mask, image, index, texts if first else None, picks if last else None)
            if first and texts is not None:
                mask = mask.index_select(0, texts)
        return x

    def predict(self, x):
        """Vocabulary logits (M, V) of states (M, D)."""
        return self.mlm(x, self.embeddings.word.weight)


@torch.no_grad()
def init(module):
    for name, p in module.named_parameters():
        norm = name.split(".")[-2:-1] and name.split(".")[-2].startswith("norm")
        if name.endswith("weight") and norm:
            p.fill_(1)
        elif name.endswith("bias"):
            p.zero_()
        else:
            p.normal_(0, 0.02)


def vit_of(c):
    i = c["model"]["image"]
    return ViT(i["size"], i["patch"], i["depth"], i["width"], i["heads"], i["mlp"] or 4 * i["width"])


def bert_of(c, vocab, mlm=True):
    t = c["model"]["text"]
    return BERT(vocab, t["positions"], t["layers"], t["fusion_layers"], t["width"], t["heads"], t["mlp"] or 4 * t["width"],
                t["dropout"], c["model"]["image"]["width"], mlm)


def attention_mask(lengths, l):
    """(B, 1, 1, L) to be added: -inf at what is beyond a text's length.

    On a CUDA device rows are as long as the next multiple of 16: those of others are copied
    in every attention. attend reads the first L columns.
    """
    wide = -(-l // 16) * 16 if lengths.is_cuda else l
    mask = torch.zeros(len(lengths), 1, 1, wide, dtype=DTYPE, device=lengths.device)
    return mask.masked_fill_(torch.arange(wide, device=lengths.device) >= lengths[:, None, None, None], float("-inf"))


def unit(x):
    """Unit features (B, C) in 32 bits."""
    return F.normalize(x.float(), dim=-1)


def compile_layers(module):
    """Compiles every kind of layer once and for all its instances; returns how many there are."""
    torch._dynamo.config.recompile_limit = 64
    layers = [m for m in module.modules() if isinstance(m, (ViTBlock, BERTLayer, Embeddings, MLMHead))]
    for m in layers:
        m.compile(dynamic=False)
    return len(layers)
