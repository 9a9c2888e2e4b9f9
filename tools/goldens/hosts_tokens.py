"""Golden training steps of tiny hosts of GSSF that compare regions with words, for model/hosts_golden_test.go.

SCAN of both directions, BFAN, IMRAM and NAAF over features of regions, written pair by pair, with dense metrics in the attention and in the similarity. The scores
of NAAF are those of evaluation, its loss that of training. It knows nothing of the Go code but names.

Run from the repository root:  python tools/goldens/hosts_tokens.py
Writes model/testdata/host_{scan,scan_i2t,bfan,imram,naaf}.safetensors. Every number comes from torch in float64. Last run with torch 2.15.
"""
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from hosts import B, EMBED, IN, L, PARTS, R, VOCAB, WIDTH, gru, hinge, lin


def attend(x, context, words_left, wa, smooth):
    """Contexts (x, C) of one pair, from x and rows of the other side; words_left says on which side of the metric x is."""
    s = x @ wa.T @ context.T if words_left else x @ wa @ context.T
    b = F.leaky_relu(s, 0.1)
    b = b / (b.norm(dim=0, keepdim=True) + 1e-8)
    return torch.softmax(smooth * b, dim=1) @ context


def cross(p, regions, regions_n, words, lengths, ways, smooth, pool, focal=False):
    """Scores of cross attention, a pair after the other: the sum over ways of the pooled cosines of queries with contexts."""
    regions, words = F.normalize(regions, dim=-1), F.normalize(words, dim=-1)
    wa, ws = p["gssf/attention/weight"], p["gssf/weight"]
    rows = []
    for i, n in enumerate(regions_n.tolist()):
        row = []
        for j, m in enumerate(lengths.tolist()):
            v, w, total = regions[i, :n], words[j, :m], 0
            for way in ways:
                q, k = (v, w) if way == "image_to_text" else (w, v)
                s = q @ wa.T @ k.T if way == "text_to_image" else q @ wa @ k.T
                b = F.leaky_relu(s, 0.1)
                weights = torch.softmax(smooth * b / (b.norm(dim=0, keepdim=True) + 1e-8), dim=1)
                if focal:
                    keep = weights > weights.mean(1, keepdim=True) * (1 + 1e-5)  # closer ones are equal
                    keep = keep | ~keep.any(1, keepdim=True)
                    weights = weights * keep
                    weights = weights / weights.sum(1, keepdim=True)
                c = weights @ k
                dot = ((q @ ws) * c if way == "image_to_text" else (c @ ws) * q).sum(1)
                r = dot / (q.norm(dim=1) * c.norm(dim=1)).clamp(min=1e-8)
                total = total + (torch.logsumexp(pool * r, 0) / pool if pool else r.mean())
            row.append(total)
        rows.append(torch.stack(row))
    return torch.stack(rows)


CROSS = {
    "scan": dict(ways=["text_to_image"], smooth=9, pool=6),
    "scan_i2t": dict(ways=["image_to_text"], smooth=4, pool=5),
    "bfan": dict(ways=["image_to_text", "text_to_image"], smooth=20, pool=0, focal=True),
}


def imram(p, regions, regions_n, words, lengths):
    """Scores of IMRAM, image to text and text to image, a pair after the other: three steps each."""
    regions, words = F.normalize(regions, dim=-1), F.normalize(words, dim=-1)
    wa, ws = p["gssf/attention/weight"], p["gssf/weight"]
    rows = []
    for i, n in enumerate(regions_n.tolist()):
        row = []
        for j, m in enumerate(lengths.tolist()):
            v, w, total = regions[i, :n], words[j, :m], 0
            for way, q, k in (("image_to_text", v, w), ("text_to_image", w, v)):
                weight, bias = p[f"interaction/{way}/memory/weight"], p[f"interaction/{way}/memory/bias"]
                x = q
                for _ in range(3):
                    c = attend(x, k, way == "text_to_image", wa, 9)
                    dot = ((q @ ws) * c if way == "image_to_text" else (c @ ws) * q).sum(1)
                    total = total + (dot / (q.norm(dim=1) * c.norm(dim=1)).clamp(min=1e-8)).mean()
                    gate, update = F.linear(torch.cat([x, c], 1), weight, bias).split(WIDTH, 1)
                    gate = torch.sigmoid(gate)
                    x = gate * x + (1 - gate) * torch.tanh(update)
            row.append(total)
        rows.append(torch.stack(row))
    return torch.stack(rows)


def naaf(p, regions, regions_n, words, lengths, training):
    """Scores of NAAF, a pair after the other."""
    regions, words = F.normalize(regions, dim=-1), F.normalize(words, dim=-1)
    t = p["interaction/boundary"][0 if training else 1].detach()
    rows = []
    for i, n in enumerate(regions_n.tolist()):
        row = []
        for j, m in enumerate(lengths.tolist()):
            v, w = regions[i, :n], words[j, :m]
            a, s = w @ (v @ p["gssf/attention/weight"]).T, w @ (v @ p["gssf/weight"]).T
            over = s.max(1).values - t
            shared = over if training else torch.softmax(5 * w @ w.T, 1) @ over
            positive = torch.exp(20 * (a - t)).masked_fill(a <= t, 0)
            positive = positive / (positive.sum(1, keepdim=True) + 1e-8)
            length = (positive @ v).square().sum(1).clamp(min=1e-30).sqrt().clamp(min=1e-8)
            b = F.leaky_relu(a, 0.1)
            weights = torch.softmax(20 * b / (b.norm(dim=0, keepdim=True) + 1e-8), 1)
            row.append((over * (shared < 0) + (positive * s).sum(1) / length + (weights * s).sum(1)).mean())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def tokens_of(p, regions, tokens, lengths):
    words = F.embedding(tokens, p["text/embeddings/word/weight"])
    (a, b), _ = gru(p, ("text/layers/00/forward", "text/layers/00/reverse"), words, lengths)
    return lin(p, "image/fc", regions), (a + b) / 2


def shapes(mode):
    s = {"image/fc/weight": (WIDTH, IN), "image/fc/bias": (WIDTH,), "text/embeddings/word/weight": (VOCAB, EMBED)}
    for direction in ("forward", "reverse"):
        for k, shape in zip(PARTS, ((3 * WIDTH, EMBED), (3 * WIDTH, WIDTH), (3 * WIDTH,), (3 * WIDTH,))):
            s[f"text/layers/00/{direction}/{k}"] = shape
    s["gssf/weight"] = s["gssf/attention/weight"] = (WIDTH, WIDTH)
    if mode == "naaf":
        s["interaction/boundary"] = (2,)
    if mode == "imram":
        for way in ("image_to_text", "text_to_image"):
            s[f"interaction/{way}/memory/weight"], s[f"interaction/{way}/memory/bias"] = (2 * WIDTH, 2 * WIDTH), (2 * WIDTH,)
    return s


def main(mode, seed):
    gen = torch.Generator().manual_seed(seed)
    exact = lambda *shape: torch.randn(*shape, generator=gen).double()
    p = {k: (exact(*shape) * 0.4).float().double().requires_grad_() for k, shape in sorted(shapes(mode).items())}
    regions, regions_n = exact(B, R, IN).float().double(), torch.tensor([4, 1, 3, 2, 4])
    tokens, lengths = torch.randint(0, VOCAB, (B, L), generator=gen), torch.tensor([6, 2, 4, 1, 5])
    out = {"input/regions": regions}
    if mode in CROSS:
        words = tokens_of(p, regions, tokens, lengths)
        scores = out["expect/scores"] = cross(p, words[0], regions_n, words[1], lengths, **CROSS[mode])
    elif mode == "imram":
        words = tokens_of(p, regions, tokens, lengths)
        scores = out["expect/scores"] = imram(p, words[0], regions_n, words[1], lengths)
    else:
        with torch.no_grad():
            p["interaction/boundary"].copy_(torch.tensor([0.25, 0.125]))
        words = tokens_of(p, regions, tokens, lengths)
        scores = naaf(p, words[0], regions_n, words[1], lengths, True)
        out["expect/scores"] = naaf(p, words[0], regions_n, words[1], lengths, False)
    loss = hinge(scores)
    loss.backward()
    out["expect/loss"] = loss.reshape(1)
    for k, v in p.items():
        out["param/" + k] = v
        if v.grad is not None:
            out["grad/" + k] = v.grad
    out = {k: v.detach().float().contiguous() for k, v in out.items()}
    out |= {"input/region_lengths": regions_n, "input/tokens": tokens, "input/lengths": lengths}
    save_file(out, f"model/testdata/host_{mode}.safetensors")
    print(mode, loss.item())


if __name__ == "__main__":
    main("imram", 34)
    main("naaf", 35)
    main("scan", 38)
    main("scan_i2t", 39)
    main("bfan", 40)
