"""Values for ops/interaction/wordpatch_test.go and objectives/vipmm_golden_test.go: the losses of ViPMM over words and patches.

Run with a Python that has torch, from the root of the repository:

    python tools/goldens/vipmm_losses.py

It writes ops/interaction/testdata/wordpatch.json, the scores of pairs, and objectives/testdata/vipmm.json, the losses of a
batch. Everything is written as the equations say, a pair at a time with summaries that are formed, in float64 on inputs that
are exact in float32; gradients are those of autograd. Last run with torch 2.15.
"""

import json
import pathlib

import torch
from torch.nn import functional as F

from cases import array, rand

gen = torch.Generator().manual_seed(97)


def save(path, cases):
    pathlib.Path(path).write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")


def alignment(words, patches, scale, tau1, tau, reduce):
    """phi_loc of words (V, c) with patches (P, c)."""
    s = scale * words @ patches.T
    attn, attn_words = s.softmax(1), s.softmax(0)
    text = (attn / tau1).softmax(0).T @ words  # (P, c): one summary for each patch
    image = (attn_words / tau1).softmax(1) @ patches  # (V, c): one for each word
    of_words = (F.cosine_similarity(words, image, dim=1) / tau).exp()
    of_patches = (F.cosine_similarity(patches, text, dim=1) / tau).exp()
    return getattr(of_words, reduce)() + getattr(of_patches, reduce)()


# Scores of pairs. Both sides have a class token, which takes no part.
N, T, M, L, C = 3, 5, 4, 6, 7
IMAGES, TEXTS = [5, 3, 4], [6, 3, 2, 5]
cases = {}
for name, how in {
    "mean": dict(scale=1.0, tau1=0.25, tau=0.5, reduce="mean"),
    "scaled": dict(scale=4.0, tau1=0.125, tau=0.25, reduce="mean"),
    "sum": dict(scale=1.0, tau1=0.5, tau=0.5, reduce="sum"),
}.items():
    x, y, dy = rand(gen, N * T, C).requires_grad_(), rand(gen, M * L, C).requires_grad_(), rand(gen, N, M)
    out = torch.stack([torch.stack([
        alignment(y.view(M, L, C)[j, 1:TEXTS[j]], x.view(N, T, C)[i, 1:IMAGES[i]], **how).log() for j in range(M)]) for i in range(N)])
    (out * dy).sum().backward()
    cases[name] = {k: array(v) for k, v in {
        "images": x, "texts": y, "index": torch.tensor(IMAGES), "lengths": torch.tensor(TEXTS), "out": out, "dy": dy, "dimages": x.grad, "dtexts": y.grad}.items()}
save("ops/interaction/testdata/wordpatch.json", cases)

# Losses of a batch of B pairs: states of tokens and features before their norm. A text has a token before its words and
# one behind, and the words of text 2 are none.
B, T, L, C = 4, 5, 7, 6
LENGTHS = [7, 4, 2, 6]
IDS = torch.tensor([3, 1, 3, 2])


def inputs():
    return {k: rand(gen, *shape).requires_grad_() for k, shape in
            {"patches": (B * T, C), "words": (B * L, C), "image": (B, C), "text": (B, C)}.items()}


def units(leaves):
    u = {k: F.normalize(v, dim=1) for k, v in leaves.items()}
    words = [u["words"].view(B, L, C)[i, 1:LENGTHS[i] - 1] for i in range(B)]
    return words, u["patches"].view(B, T, C)[:, 1:], u["image"], u["text"]


def nce(phi, same):
    """Both directions of the contrast of phi (images, texts), with all of an id as positives."""
    logits, target = phi.log(), same / same.sum(1, keepdim=True)
    return sum(-(target * x.log_softmax(1)).sum(1).mean() for x in (logits, logits.T))


def word_patch(leaves, scale, tau1, tau, reduce, by_id=False):
    words, patches, _, _ = units(leaves)
    one = torch.ones((), dtype=torch.float64)  # of a text without a word
    phi = torch.stack([torch.stack([
        alignment(words[j], patches[i], scale, tau1, tau, reduce) if len(words[j]) else one for j in range(B)]) for i in range(B)])
    same = (IDS[:, None] == IDS[None] if by_id else torch.eye(B)).double()
    return nce(phi, same)


def token_image(leaves, margin, negatives, there):
    words, _, image, _ = units(leaves)
    hinges = [(margin - words[i] @ image[i] + words[i] @ image[negatives[i]]).clamp(min=0) for i in range(B) if there[i]]
    return torch.cat(hinges).mean()


def text_swap(leaves, margin, alpha, texts, images=None, recompute=False, batch=False):
    words, patches, y, x = units(leaves)
    d = C**0.5

    def attend(q, k):
        return (q @ k.T / d).softmax(1) @ k if len(k) else torch.zeros_like(q)

    def mean(f):
        return f.mean(0) if len(f) else torch.zeros(C, dtype=torch.float64)

    def f_x(t, i):  # texts t as images i see them
        return attend(y[i], x[t]) if batch else torch.stack([mean(attend(patches[b], words[a])) for a, b in zip(t, i)])

    def f_y(t, i):
        return attend(x[t], y[i]) if batch else torch.stack([mean(attend(words[a], patches[b])) for a, b in zip(t, i)])

    own = list(range(B))
    g = (x * y).sum(1) + alpha * (f_x(own, own) * f_y(own, own)).sum(1)
    swapped = [i for i in own if texts[i] != i]
    g2 = (x[texts] * y).sum(1) + alpha * (f_x(texts, own) * f_y(texts if recompute else own, own)).sum(1)
    loss = (margin - g + g2).clamp(min=0)[swapped].mean()
    if images:
        swapped = [i for i in own if images[i] != i]
        g2 = (x * y[images]).sum(1) + alpha * (f_x(own, images if recompute else own) * f_y(own, images)).sum(1)
        loss = loss + (margin - g + g2).clamp(min=0)[swapped].mean()
    return loss


cases = {}


def case(name, loss, **more):
    leaves = inputs()
    out = loss(leaves)
    out.backward()
    values = leaves | {"d" + k: v.grad if v.grad is not None else torch.zeros_like(v) for k, v in leaves.items()}
    values |= {"lengths": torch.tensor(LENGTHS), "ids": IDS, "out": out} | {k: torch.tensor(v) for k, v in more.items()}
    cases[name] = {k: array(v) for k, v in values.items()}


case("word_patch mean", lambda x: word_patch(x, 1.0, 0.25, 0.5, "mean"))
case("word_patch scaled", lambda x: word_patch(x, 4.0, 0.25, 0.5, "mean"))
case("word_patch sum", lambda x: word_patch(x, 1.0, 0.25, 0.5, "sum"))
case("word_patch ids", lambda x: word_patch(x, 1.0, 0.25, 0.5, "mean", by_id=True))
case("token_image", lambda x: token_image(x, 0.5, [2, 3, 1, 0], [1, 1, 1, 1]), index=[2, 3, 1, 0], there=[1.0, 1, 1, 1])
case("token_image without", lambda x: token_image(x, 0.5, [1, 3, 2, 0], [1, 1, 0, 1]), index=[1, 3, 2, 0], there=[1.0, 1, 0, 1])
TEXT_SWAPS, IMAGE_SWAPS = [2, 1, 3, 0], [1, 3, 2, 3]
for name, how in {"": {}, " recompute": {"recompute": True}, " images": {"images": IMAGE_SWAPS}, " images recompute": {"images": IMAGE_SWAPS, "recompute": True},
                  " batch": {"batch": True}, " batch images recompute": {"batch": True, "images": IMAGE_SWAPS, "recompute": True}}.items():
    case("text_swap" + name, lambda x: text_swap(x, 0.2, 0.5, TEXT_SWAPS, **how),
         index=TEXT_SWAPS, there=[float(a != i) for i, a in enumerate(TEXT_SWAPS)],
         images=IMAGE_SWAPS, images_there=[float(a != i) for i, a in enumerate(IMAGE_SWAPS)])
save("objectives/testdata/vipmm.json", cases)
