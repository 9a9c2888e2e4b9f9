"""Golden training steps of sentence embeddings for model/simcse_golden_test.go.

An independent PyTorch version of the losses of SimCSE (Gao et al. 2021, equations 4 and 5) and MCSE (Zhang et al. 2022,
equations 3 and 4), and of fine-tuning on pairs of sentences: softmax over (u, v, |u-v|) and regression of the cosine (Reimers and
Gurevych 2019, section 3), and a classifier over both sentences in one text (Devlin et al. 2019, section 4). Without dropout, which is another generator's: SimCSE with given positives and hard negatives over a post-norm
BERT written out, MCSE over the towers of clip.py. It knows nothing of the Go code but the names of
parameters and inputs.

Run from the repository root:  python tools/goldens/simcse.py
Written with torch 2.15. Writes model/testdata/{simcse_training,simcse_always,simcse_none,mcse,pairs_classes,pairs_scores,
pairs_joint,pairs_joint_scores}.safetensors.
"""
import math

import clip
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

B, L, VOCAB, W, LAYERS, POSITIONS = 4, 6, 40, 12, 2, 10
NAMES = ["attention/qkv", "attention/output", "attention/norm", "ffn/intermediate", "ffn/output", "ffn/norm"]


def bert_shapes():
    s = {"word/weight": (VOCAB, W), "position/weight": (POSITIONS, W), "token_type/weight": (2, W), "norm/weight": (W,), "norm/bias": (W,)}
    s = {"text/embeddings/" + k: v for k, v in s.items()}
    for i in range(LAYERS):
        for name, out, inp in (("attention/qkv", 3 * W, W), ("attention/output", W, W), ("ffn/intermediate", 4 * W, W), ("ffn/output", W, 4 * W)):
            s[f"text/layers/{i:02d}/{name}/weight"], s[f"text/layers/{i:02d}/{name}/bias"] = (out, inp), (out,)
        for name in ("attention/norm", "ffn/norm"):
            s[f"text/layers/{i:02d}/{name}/weight"], s[f"text/layers/{i:02d}/{name}/bias"] = (W,), (W,)
    return s


def draw(gen, shapes):
    p = {}
    for name, shape in sorted(shapes.items()):
        x = 0.3 * torch.randn(shape, generator=gen)
        if "norm" in name.split("/")[-2] and name.endswith("weight"):
            x = x + 1
        p[name] = x.requires_grad_()
    return p


def texts(gen, lengths, rows):
    lengths = torch.tensor(lengths)
    padding = torch.arange(L)[None] >= lengths[:, None]
    tokens = torch.randint(5, VOCAB, (rows, L), generator=gen).masked_fill(padding, 0)
    tokens[:, 0] = 2
    return tokens, lengths, padding


def bert(p, tokens, padding, types=None):
    """States of every layer, the embeddings first."""
    e = "text/embeddings/"
    types = torch.zeros_like(tokens) if types is None else types
    x = p[e + "word/weight"][tokens] + p[e + "position/weight"][:L] + p[e + "token_type/weight"][types]
    x = F.layer_norm(x, (W,), p[e + "norm/weight"], p[e + "norm/bias"], 1e-12)
    states = [x]
    for i in range(LAYERS):
        states.append(layer(p, f"text/layers/{i:02d}", states[-1], padding))
    return states


def layer(p, at, x, padding):
    """A post-norm layer of two heads."""
    g = lambda name, x: F.linear(x, p[f"{at}/{name}/weight"], p[f"{at}/{name}/bias"])
    norm = lambda name, x: F.layer_norm(x, (W,), p[f"{at}/{name}/weight"], p[f"{at}/{name}/bias"], 1e-12)
    split = lambda x: x.view(x.shape[0], L, 2, W // 2).transpose(1, 2)
    q, k, v = (split(x) for x in g("attention/qkv", x).chunk(3, -1))
    h = F.scaled_dot_product_attention(q, k, v, attn_mask=~padding[:, None, None, :])
    x = norm("attention/norm", x + g("attention/output", h.transpose(1, 2).reshape(x.shape)))
    return norm("ffn/norm", x + g("ffn/output", F.gelu(g("ffn/intermediate", x))))


def save(name, p, inputs, expected):
    out = {"input/" + k: v for k, v in inputs.items()}
    out.update({"expect/" + k: v for k, v in expected.items()})
    for k, v in p.items():
        out["param/" + k] = v
        out["grad/" + k] = v.grad if v.grad is not None else torch.zeros_like(v)
    save_file({k: v.detach().clone().contiguous() for k, v in out.items()}, f"model/testdata/{name}.safetensors")
    print(name, {k: v.item() for k, v in expected.items() if v.numel() == 1})


def simcse(head, pool, tau, alpha, seed):
    gen = torch.Generator().manual_seed(seed)
    shapes = bert_shapes()
    proj = {"training": "sentence_head", "always": "text_proj"}.get(head)
    dim = {"training": W, "always": 7}.get(head)
    if proj:
        shapes[proj + "/weight"], shapes[proj + "/bias"] = (dim, W), (dim,)
    p = draw(gen, shapes)
    inputs, z = {}, []
    for name, lengths in (("", [6, 4, 3, 5]), ("2", [3, 6, 5, 4]), ("3", [4, 5, 6, 3])):
        tokens, n, padding = texts(gen, lengths, B)
        inputs["tokens" + name], inputs["lengths" + name] = tokens, n
        states = bert(p, tokens, padding)
        keep = (~padding).float()[..., None]
        mean = lambda x: (x * keep).sum(1) / keep.sum(1)
        x = {"class": states[-1][:, 0], "mean": mean(states[-1]), "first_last": mean((states[1] + states[-1]) / 2)}[pool]
        z.append(torch.tanh(F.linear(x, p[proj + "/weight"], p[proj + "/bias"])) if proj else x)
    cos = lambda a, b: F.cosine_similarity(a[:, None], b[None], dim=-1) / tau
    logits = torch.cat([cos(z[0], z[1]), cos(z[0], z[2]) + math.log(alpha) * torch.eye(B)], 1)
    labels = torch.arange(B)
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    save("simcse_" + head, p, inputs, {"loss": loss, "simcse": loss, "simcse_accuracy": (logits.argmax(1) == labels).float().mean()})


def mcse(seed, tau=0.3, tau_inter=0.2, weight=0.4):
    gen = torch.Generator().manual_seed(seed)
    shapes = clip.shapes(1, clip.C)
    shapes["image_proj/bias"] = shapes["text_proj/bias"] = (clip.C,)
    shapes["sentence_head/weight"], shapes["sentence_head/bias"] = (clip.WT, clip.WT), (clip.WT,)
    del shapes["logit_scale"]
    p = {}
    for name, shape in sorted(shapes.items()):
        x = 0.2 * torch.randn(shape, generator=gen)
        p[name] = (x + 1 if "norm" in name.split("/")[-2] and name.endswith("weight") else x).requires_grad_()
    images = torch.randn(clip.B, 3, clip.SIZE, clip.SIZE, generator=gen)
    tokens, lengths, padding = texts(gen, [6, 4, 3, 5, 2], clip.B)
    x, y = clip.image_tower(p, images, 1)[:, 0], clip.text_tower(p, tokens, padding, 1)[:, 0]
    head = lambda name, x: torch.tanh(F.linear(x, p[name + "/weight"], p[name + "/bias"]))
    cos = lambda a, b, tau: F.cosine_similarity(a[:, None], b[None], dim=-1) / tau
    labels = torch.arange(clip.B)
    z = head("sentence_head", y)
    intra = cos(z, z, tau)  # both passes, without dropout
    inter = cos(head("text_proj", y), head("image_proj", x), tau_inter)
    simcse, mcse = F.cross_entropy(intra, labels), (F.cross_entropy(inter, labels) + F.cross_entropy(inter, labels)) / 2
    (simcse + weight * mcse).backward()
    save("mcse", p, {"images": images, "tokens": tokens, "lengths": lengths}, {
        "loss": simcse + weight * mcse, "simcse": simcse, "mcse": mcse,
        "simcse_accuracy": (intra.argmax(1) == labels).float().mean(), "mcse_accuracy": (inter.argmax(1) == labels).float().mean()})


def pairs(name, joint, classes, low, high, seed):
    gen = torch.Generator().manual_seed(seed)
    shapes = bert_shapes()
    if joint:
        shapes["pair_head/pooler/weight"], shapes["pair_head/pooler/bias"] = (W, W), (W,)
    if joint or classes:
        k = max(1, classes)
        shapes["pair_head/classifier/weight"], shapes["pair_head/classifier/bias"] = (k, W if joint else 3 * W), (k,)
    p = draw(gen, shapes)
    head = lambda part, x: F.linear(x, p[f"pair_head/{part}/weight"], p[f"pair_head/{part}/bias"])
    tokens, lengths, padding = texts(gen, [6, 4, 3, 5], B)
    inputs = {"tokens": tokens, "lengths": lengths}
    if joint:
        types = (torch.arange(L)[None] >= torch.tensor([3, 2, 2, 4])[:, None]).long().masked_fill(padding, 0)
        inputs["segments"] = types
        y = head("classifier", torch.tanh(head("pooler", bert(p, tokens, padding, types)[-1][:, 0])))
    else:
        tokens2, lengths2, padding2 = texts(gen, [3, 6, 5, 4], B)
        inputs["tokens2"], inputs["lengths2"] = tokens2, lengths2
        mean = lambda x, keep: (x * keep).sum(1) / keep.sum(1)
        u = mean(bert(p, tokens, padding)[-1], (~padding).float()[..., None])
        v = mean(bert(p, tokens2, padding2)[-1], (~padding2).float()[..., None])
        y = head("classifier", torch.cat([u, v, (u - v).abs()], 1)) if classes else F.cosine_similarity(u, v)[:, None]
    if classes:
        inputs["labels"] = torch.tensor([2, 0, 1, 2][:B]) % classes
        loss = F.cross_entropy(y, inputs["labels"])
    else:
        scores = torch.tensor([4.2, 1.0, 2.5, 5.0])
        inputs["scores"] = scores
        loss = F.mse_loss(y[:, 0], (scores - low) / (high - low))
    loss.backward()
    save(name, p, inputs, {"loss": loss, "outputs": y})


if __name__ == "__main__":
    pairs("pairs_classes", False, 3, 0, 5, 35)
    pairs("pairs_scores", False, 0, 1, 5, 36)
    pairs("pairs_joint", True, 2, 0, 5, 37)
    pairs("pairs_joint_scores", True, 0, 0, 5, 38)
    simcse("training", "class", 0.3, 1.0, 31)
    simcse("always", "first_last", 0.2, 2.0, 32)
    simcse("none", "mean", 0.25, 0.5, 33)
    mcse(34)
