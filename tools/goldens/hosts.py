"""Golden training steps of tiny hosts of GSSF for model/hosts_golden_test.go.

VSE++, VSE-infinity, VSRN and ESA over features of regions, written with PyTorch's own modules in the manner of the published
code: nn.Linear and nn.GRU over packed sequences, GPO with torch.sort, the graph layers with torch.matmul, and the hinge
loss with the hardest negatives. The graph's regions are brought to unit length each (docs/gssf.md). The metric within the
graph of VSRN is a dense one. VSE-infinity and VSRN come without nn.BatchNorm1d over the regions that an image has, and they and
ESA with it, and VSRN with its captioning loss, at half its weight. It knows nothing of the Go code but names.

Run from the repository root:  python tools/goldens/hosts.py
Writes model/testdata/host_{vsepp,vseinf,vsrn,vseinf_norm,vsrn_norm,vsrn_caption,esa_norm}.safetensors. Every number comes from
torch in float64. Last run with torch 2.15.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

B, R, IN, WIDTH, L, VOCAB, EMBED, MARGIN = 5, 4, 6, 8, 6, 40, 7, 0.2
NORM = ("weight", "bias", "running_mean", "running_var")
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


def esa(p, prefix, x, lengths):
    """External space attention: softmax over the rows of each channel."""
    mask = (torch.arange(x.shape[1]).expand(x.shape[:2]) < lengths.unsqueeze(1)).unsqueeze(-1)
    weights = torch.softmax(lin(p, prefix, x).masked_fill(mask == 0, -10000), 1).masked_fill(mask == 0, 0)
    return (weights * x.masked_fill(mask == 0, 0)).sum(1)


def mean(x, lengths):
    mask = (torch.arange(x.shape[1]).expand(x.shape[:2]) < lengths.unsqueeze(1)).unsqueeze(-1)
    return (x * mask).sum(1) / lengths.unsqueeze(1)


def lin(p, name, x):
    return F.linear(x, p[name + "/weight"], p.get(name + "/bias"))


def batch_norm(p, name, x, lengths, train):
    """nn.BatchNorm1d over the rows of x that count; the others are 0. In training it moves p's running statistics."""
    if name + "/weight" not in p:
        return x
    counts = torch.arange(x.shape[1]) < lengths.unsqueeze(1)
    m = nn.BatchNorm1d(x.shape[2]).double().train(train)
    return torch.zeros_like(x).masked_scatter(
        counts.unsqueeze(-1), functional_call(m, {k: p[f"{name}/{k}"] for k in NORM}, (x[counts],)))


def graph(p, x, lengths, train):
    for i in range(2):
        name = f"image/graph/{i:02d}"
        theta, phi, g = (lin(p, f"{name}/{k}", x) for k in ("theta", "phi", "g"))
        phi = phi @ p[name + "/gssf/weight"].T
        rows = []
        for b, n in enumerate(lengths.tolist()):
            y = torch.matmul(theta[b, :n] @ phi[b, :n].T / n, g[b, :n])
            rows.append(F.pad(y, (0, 0, 0, R - n)))
        x = x + batch_norm(p, name + "/bn", lin(p, name + "/w", torch.stack(rows)), lengths, train)
    return F.normalize(x, dim=-1)


def features(mode, p, regions, regions_n, tokens, lengths, train=True):
    """Features of both sides, and the regions as the tower leaves them."""
    x = lin(p, "image/fc", regions)
    words = F.embedding(tokens, p["text/embeddings/word/weight"])
    one = "text/layers/00/forward"
    if mode == "vsepp":
        image, text = mean(x, regions_n), gru(p, (one,), words, lengths)[1]
    elif mode in ("vseinf", "esa"):
        h = batch_norm(p, "image/bn1", lin(p, "image/fc1", regions), regions_n, train)
        x = x + lin(p, "image/fc2", F.relu(h))
        (a, b), _ = gru(p, (one, "text/layers/00/reverse"), words, lengths)
        pool = gpo if mode == "vseinf" else esa
        image, text = pool(p, "image/pool", x, regions_n), pool(p, "text/pool", (a + b) / 2, lengths)
    else:
        x = graph(p, F.normalize(x, dim=-1), regions_n, train)
        image = gru(p, ("image/pool",), x, regions_n)[1]
        image = batch_norm(p, "image/bn", image.unsqueeze(1), torch.ones(B).long(), train).squeeze(1)
        text = gru(p, (one,), words, lengths)[1]
    return F.normalize(image), F.normalize(text), x


def captioning(p, regions, regions_n, tokens, lengths):
    """The published S2VTAttModel, word by word with the right words before, and its LanguageModelCriterion."""
    name = "captioning/"
    (memory,), state = gru(p, (name + "encoder",), lin(p, name + "encoder/fc", regions), regions_n)
    counts = torch.arange(R) < regions_n.unsqueeze(1)
    words = F.embedding(tokens, p[name + "words/weight"])
    linear1 = torch.cat([p[name + "attention/memory/weight"], p[name + "attention/state/weight"]], 1)
    inputs = torch.cat([p[name + "decoder/words/weight"], p[name + "decoder/memory/weight"]], 1)
    loss = 0
    for t in range(L - 1):
        both = torch.cat([memory, state.unsqueeze(1).expand(-1, R, -1)], 2)
        scores = torch.tanh(F.linear(both, linear1, p[name + "attention/memory/bias"])) @ p[name + "attention/score/weight"]
        context = torch.bmm(torch.softmax(scores.masked_fill(~counts, -torch.inf), 1).unsqueeze(1), memory).squeeze(1)
        state = torch.gru_cell(torch.cat([words[:, t], context], 1), state, inputs, p[name + "decoder/weight_hh"], p[name + "decoder/words/bias"], p[name + "decoder/bias_hh"])
        nll = F.nll_loss(F.log_softmax(lin(p, name + "out", state), 1), tokens[:, t + 1], reduction="none")
        loss = loss + (nll * (t + 1 < lengths)).sum() / len(tokens)
    return loss


def hinge(scores):
    """The published ContrastiveLoss with max_violation."""
    diagonal = scores.diag().view(-1, 1)
    eye = torch.eye(len(scores)) > 0.5
    s = (MARGIN + scores - diagonal.expand_as(scores)).clamp(min=0).masked_fill(eye, 0)
    im = (MARGIN + scores - diagonal.t().expand_as(scores)).clamp(min=0).masked_fill(eye, 0)
    return s.max(1)[0].sum() + im.max(0)[0].sum()


def shapes(mode, norm, caption):
    s = {"image/fc/weight": (WIDTH, IN), "image/fc/bias": (WIDTH,), "text/embeddings/word/weight": (VOCAB, EMBED)}

    def unit(name, inp, h):
        for k, shape in zip(PARTS, ((3 * h, inp), (3 * h, h), (3 * h,), (3 * h,))):
            s[f"{name}/{k}"] = shape

    unit("text/layers/00/forward", EMBED, WIDTH)
    if mode in ("vseinf", "esa"):
        unit("text/layers/00/reverse", EMBED, WIDTH)
        s["image/fc1/weight"], s["image/fc1/bias"], s["image/fc2/weight"] = (WIDTH // 2, IN), (WIDTH // 2,), (WIDTH, WIDTH // 2)
        for side in ("image", "text") if mode == "esa" else ():
            s[side + "/pool/weight"], s[side + "/pool/bias"] = (WIDTH, WIDTH), (WIDTH,)
        for side in ("image", "text") if mode == "vseinf" else ():
            unit(side + "/pool/forward", 32, 32)
            unit(side + "/pool/reverse", 32, 32)
            s[side + "/pool/scores/weight"] = (1, 32)
    if mode == "vsrn":
        for i in range(2):
            for k in ("theta", "phi", "g", "w"):
                s[f"image/graph/{i:02d}/{k}/weight"], s[f"image/graph/{i:02d}/{k}/bias"] = (WIDTH, WIDTH), (WIDTH,)
            s[f"image/graph/{i:02d}/gssf/weight"] = (WIDTH, WIDTH)
        unit("image/pool", WIDTH, WIDTH)
    if caption:
        c, h, e = "captioning/", 6, 5
        unit(c + "encoder", h, h)
        s[c + "encoder/fc/weight"], s[c + "encoder/fc/bias"] = (h, WIDTH), (h,)
        s[c + "words/weight"], s[c + "attention/memory/weight"], s[c + "attention/memory/bias"] = (VOCAB, e), (h, h), (h,)
        s[c + "attention/state/weight"], s[c + "attention/score/weight"] = (h, h), (h,)
        s[c + "decoder/words/weight"], s[c + "decoder/words/bias"], s[c + "decoder/memory/weight"] = (3 * h, e), (3 * h,), (3 * h, h)
        s[c + "decoder/weight_hh"], s[c + "decoder/bias_hh"] = (3 * h, h), (3 * h,)
        s[c + "out/weight"], s[c + "out/bias"] = (VOCAB, h), (VOCAB,)
    norms = {"vseinf": {"image/bn1": WIDTH // 2}, "esa": {"image/bn1": WIDTH // 2}, "vsrn": {"image/bn": WIDTH, "image/graph/00/bn": WIDTH, "image/graph/01/bn": WIDTH}}
    for name, d in norms[mode].items() if norm else ():
        for k in NORM:
            s[f"{name}/{k}"] = (d,)
    return s


def main(mode, seed, norm=False, caption=False):
    gen = torch.Generator().manual_seed(seed)
    exact = lambda *shape: torch.randn(*shape, generator=gen).double()
    p = {k: (exact(*shape) * (0.1 if "pool" in k and mode == "vseinf" else 0.4)).float().double().requires_grad_() for k, shape in sorted(shapes(mode, norm, caption).items())}
    for k in p:
        if "running" in k:
            p[k] = (p[k].detach().abs() + 0.5 if k.endswith("var") else p[k].detach()).float().double()
    start = {k: v.detach().clone() for k, v in p.items()}
    regions, regions_n = exact(B, R, IN).float().double(), torch.tensor([4, 1, 3, 2, 4])
    tokens, lengths = torch.randint(0, VOCAB, (B, L), generator=gen), torch.tensor([6, 2, 4, 1, 5])
    image, text, x = features(mode, p, regions, regions_n, tokens, lengths)
    scores = image @ text.T
    loss = hinge(scores)
    if caption:
        loss = loss + 0.5 * captioning(p, x, regions_n, tokens, lengths)
    loss.backward()
    if norm:
        with torch.no_grad():
            image, text, _ = features(mode, p, regions, regions_n, tokens, lengths, train=False)
            scores = image @ text.T
    out = {"input/regions": regions, "expect/loss": loss.reshape(1), "expect/scores": scores, "expect/image": image, "expect/text": text}
    for k, v in p.items():
        out["param/" + k] = start[k]
        if "running" in k:
            out["after/" + k] = v
        else:
            out["grad/" + k] = v.grad
    out = {k: v.detach().float().contiguous() for k, v in out.items()}
    out |= {"input/region_lengths": regions_n, "input/tokens": tokens, "input/lengths": lengths}
    save_file(out, f"model/testdata/host_{mode}{'_norm' * norm}{'_caption' * caption}.safetensors")
    print(mode, loss.item())


if __name__ == "__main__":
    main("vsepp", 31)
    main("vseinf", 32)
    main("vsrn", 33)
    main("vseinf", 34, norm=True)
    main("vsrn", 35, norm=True)
    main("vsrn", 36, caption=True)
    main("esa", 37, norm=True)
