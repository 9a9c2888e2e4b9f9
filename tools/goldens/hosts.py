"""Golden training steps of tiny hosts of GSSF for model/hosts_golden_test.go.

VSE++, VSE-infinity, VSRN, IMRAM and NAAF over features of regions, written with PyTorch's own modules in the manner of the published
code: nn.Linear and nn.GRU over packed sequences, GPO with torch.sort, the graph layers with torch.matmul, and the hinge
loss with the hardest negatives. Batch norms are left out, and the graph's regions are brought to unit length each
(docs/gssf.md). The metric within the graph of VSRN is a dense one, and so are those of the
attention and of the similarity of IMRAM and NAAF. The scores of NAAF are those of evaluation, its loss that of training. It knows nothing of the Go code but names.

Run from the repository root:  python tools/goldens/hosts.py
Writes model/testdata/host_{vsepp,vseinf,vsrn,imram,naaf}.safetensors. Every number comes from torch in float64. Last run with torch
2.15.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

B, R, IN, WIDTH, L, VOCAB, EMBED, MARGIN = 5, 4, 6, 8, 6, 40, 7, 0.2
PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def gru(p, directions, x, lengths):
    """States of each direction (B, l, H), 0 behind a length, and the last states of the first."""
    h, both = p[directions[0] + "/weight_hh"].shape[1], len(directions) == 2
    m = nn.GRU(x.shape[2], h, batch_first=True, bidirectional=both).double()
    weights = {f"{k}_l0{end}": p[f"{d}/{k}"] for d, end in zip(directions, ("", "_reverse")) for k in PARTS}
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, last = functional_call(m, weights, (packed,))
    out = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0]
    return out.split(h, 2), last[0]


def positions(length, d):
    table = torch.zeros(length, d).double()
    place = torch.arange(length).double().unsqueeze(1)
    div = torch.exp(torch.arange(0, d, 2).double() * -(math.log(10000.0) / d))
    table[:, 0::2], table[:, 1::2] = torch.sin(place * div), torch.cos(place * div)
    return table


def gpo(p, prefix, x, lengths):
    n, length, _ = x.shape
    mask = (torch.arange(length).expand(n, length) < lengths.unsqueeze(1)).unsqueeze(-1)
    pes = positions(length, 32).unsqueeze(0).repeat(n, 1, 1).masked_fill(mask == 0, 0)
    (a, b), _ = gru(p, (prefix + "/forward", prefix + "/reverse"), pes, lengths)
    scores = F.linear((a + b) / 2, p[prefix + "/scores/weight"]).masked_fill(mask == 0, -10000)
    weights = torch.softmax(scores / 0.1, 1)
    x = x.masked_fill(mask == 0, -10000).sort(dim=1, descending=True)[0].masked_fill(mask == 0, 0)
    return (x * weights).sum(1)


def mean(x, lengths):
    mask = (torch.arange(x.shape[1]).expand(x.shape[:2]) < lengths.unsqueeze(1)).unsqueeze(-1)
    return (x * mask).sum(1) / lengths.unsqueeze(1)


def lin(p, name, x):
    return F.linear(x, p[name + "/weight"], p.get(name + "/bias"))


def graph(p, x, lengths):
    for i in range(2):
        name = f"image/graph/{i:02d}"
        theta, phi, g = (lin(p, f"{name}/{k}", x) for k in ("theta", "phi", "g"))
        phi = phi @ p[name + "/gssf/weight"].T
        rows = []
        for b, n in enumerate(lengths.tolist()):
            y = torch.matmul(theta[b, :n] @ phi[b, :n].T / n, g[b, :n])
            rows.append(F.pad(y, (0, 0, 0, R - n)))
        x = x + lin(p, name + "/w", torch.stack(rows))
    return F.normalize(x, dim=-1)


def features(mode, p, regions, regions_n, tokens, lengths):
    x = lin(p, "image/fc", regions)
    words = F.embedding(tokens, p["text/embeddings/word/weight"])
    one = "text/layers/00/forward"
    if mode == "vsepp":
        image, text = mean(x, regions_n), gru(p, (one,), words, lengths)[1]
    elif mode == "vseinf":
        x = x + lin(p, "image/fc2", F.relu(lin(p, "image/fc1", regions)))
        (a, b), _ = gru(p, (one, "text/layers/00/reverse"), words, lengths)
        image, text = gpo(p, "image/pool", x, regions_n), gpo(p, "text/pool", (a + b) / 2, lengths)
    else:
        x = graph(p, F.normalize(x, dim=-1), regions_n)
        image, text = gru(p, ("image/pool",), x, regions_n)[1], gru(p, (one,), words, lengths)[1]
    return F.normalize(image), F.normalize(text)


def attend(x, context, words_left, wa, smooth):
    """Contexts (x, C) of one pair, from x and rows of the other side; words_left says on which side of the metric x is."""
    s = x @ wa.T @ context.T if words_left else x @ wa @ context.T
    b = F.leaky_relu(s, 0.1)
    b = b / (b.norm(dim=0, keepdim=True) + 1e-8)
    return torch.softmax(smooth * b, dim=1) @ context


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


def hinge(scores):
    """The published ContrastiveLoss with max_violation."""
    diagonal = scores.diag().view(-1, 1)
    eye = torch.eye(len(scores)) > 0.5
    s = (MARGIN + scores - diagonal.expand_as(scores)).clamp(min=0).masked_fill(eye, 0)
    im = (MARGIN + scores - diagonal.t().expand_as(scores)).clamp(min=0).masked_fill(eye, 0)
    return s.max(1)[0].sum() + im.max(0)[0].sum()


def shapes(mode):
    s = {"image/fc/weight": (WIDTH, IN), "image/fc/bias": (WIDTH,), "text/embeddings/word/weight": (VOCAB, EMBED)}

    def unit(name, inp, h):
        for k, shape in zip(PARTS, ((3 * h, inp), (3 * h, h), (3 * h,), (3 * h,))):
            s[f"{name}/{k}"] = shape

    unit("text/layers/00/forward", EMBED, WIDTH)
    if mode in ("imram", "naaf"):
        unit("text/layers/00/reverse", EMBED, WIDTH)
        s["gssf/weight"] = s["gssf/attention/weight"] = (WIDTH, WIDTH)
    if mode == "naaf":
        s["interaction/boundary"] = (2,)
    if mode == "imram":
        for way in ("image_to_text", "text_to_image"):
            s[f"interaction/{way}/memory/weight"], s[f"interaction/{way}/memory/bias"] = (2 * WIDTH, 2 * WIDTH), (2 * WIDTH,)
    if mode == "vseinf":
        unit("text/layers/00/reverse", EMBED, WIDTH)
        s["image/fc1/weight"], s["image/fc1/bias"], s["image/fc2/weight"] = (WIDTH // 2, IN), (WIDTH // 2,), (WIDTH, WIDTH // 2)
        for side in ("image", "text"):
            unit(side + "/pool/forward", 32, 32)
            unit(side + "/pool/reverse", 32, 32)
            s[side + "/pool/scores/weight"] = (1, 32)
    if mode == "vsrn":
        for i in range(2):
            for k in ("theta", "phi", "g", "w"):
                s[f"image/graph/{i:02d}/{k}/weight"], s[f"image/graph/{i:02d}/{k}/bias"] = (WIDTH, WIDTH), (WIDTH,)
            s[f"image/graph/{i:02d}/gssf/weight"] = (WIDTH, WIDTH)
        unit("image/pool", WIDTH, WIDTH)
    return s


def main(mode, seed):
    gen = torch.Generator().manual_seed(seed)
    exact = lambda *shape: torch.randn(*shape, generator=gen).double()
    p = {k: (exact(*shape) * (0.1 if "pool" in k and mode == "vseinf" else 0.4)).float().double().requires_grad_() for k, shape in sorted(shapes(mode).items())}
    regions, regions_n = exact(B, R, IN).float().double(), torch.tensor([4, 1, 3, 2, 4])
    tokens, lengths = torch.randint(0, VOCAB, (B, L), generator=gen), torch.tensor([6, 2, 4, 1, 5])
    out = {"input/regions": regions}
    if mode == "imram":
        words = tokens_of(p, regions, tokens, lengths)
        scores = imram(p, words[0], regions_n, words[1], lengths)
    elif mode == "naaf":
        with torch.no_grad():
            p["interaction/boundary"].copy_(torch.tensor([0.25, 0.125]))
        words = tokens_of(p, regions, tokens, lengths)
        scores = naaf(p, words[0], regions_n, words[1], lengths, True)
        out["expect/scores"] = naaf(p, words[0], regions_n, words[1], lengths, False)
    else:
        image, text = out["expect/image"], out["expect/text"] = features(mode, p, regions, regions_n, tokens, lengths)
        scores = image @ text.T
    loss = hinge(scores)
    loss.backward()
    out = {"expect/scores": scores} | out | {"expect/loss": loss.reshape(1)}
    for k, v in p.items():
        out["param/" + k] = v
        if v.grad is not None:
            out["grad/" + k] = v.grad
    out = {k: v.detach().float().contiguous() for k, v in out.items()}
    out |= {"input/region_lengths": regions_n, "input/tokens": tokens, "input/lengths": lengths}
    save_file(out, f"model/testdata/host_{mode}.safetensors")
    print(mode, loss.item())


if __name__ == "__main__":
    main("vsepp", 31)
    main("vseinf", 32)
    main("vsrn", 33)
    main("imram", 34)
    main("naaf", 35)
