"""Golden training steps of tiny hosts with vectors of similarity for model/sgraf_golden_test.go.

SGR and SAF of SGRAF over features of regions, written with PyTorch's own modules and a loop over
texts in the manner of the published code; batch norms and the bias of keys and of the pools' last
layer are left out (docs/gssf.md). SGR has dense metrics at both sites. It knows nothing of the Go
code but names.

Run from the repository root:  python tools/goldens/sgraf.py
Writes model/testdata/host_{sgr,saf}.safetensors. Every number comes from torch in float64. Last run
with torch 2.15.
"""
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from hosts import B, EMBED, IN, L, PARTS, R, VOCAB, WIDTH, gru, hinge, lin

S, STEPS = 6, 2


def whole(p, side, x):
    """The pool of one sequence (l, C): (C)."""
    h = torch.tanh(lin(p, f"interaction/{side}/local", x))
    g = torch.tanh(lin(p, f"interaction/{side}/global", x.mean(0)))
    weights = torch.softmax((h * g) @ p[f"interaction/{side}/common"], 0)
    return F.normalize(weights @ x, dim=0)


def vector(p, image, words, metrics):
    attended = folded = image
    a, b = whole(p, "image", image), whole(p, "text", words)
    if metrics:
        attended, folded, a = image @ p["gssf/attention/weight"], image @ p["gssf/weight"], a @ p["gssf/weight"]
    logits = F.leaky_relu(attended @ words.T, 0.1)
    weights = torch.softmax(9 * F.normalize(logits, dim=1), 0)  # each region's over the words, then of regions
    context = (weights.T @ folded) / (weights.T @ image).norm(dim=1, keepdim=True)
    local = F.normalize(lin(p, "interaction/local", (context - words) ** 2), dim=1)
    return torch.cat([F.normalize(lin(p, "interaction/global", (a - b) ** 2), dim=0).unsqueeze(0), local])


def score(mode, p, nodes):
    if mode == "saf":
        gates = torch.sigmoid(lin(p, "interaction/gate", nodes)).squeeze(1)
        f = F.normalize((gates / gates.sum()) @ nodes, dim=0)
    else:
        for i in range(STEPS):
            q, k = (lin(p, f"interaction/graph/{i:02d}/{n}", nodes) for n in ("query", "key"))
            nodes = F.relu(lin(p, f"interaction/graph/{i:02d}/out", torch.softmax(q @ k.T, 1) @ nodes))
        f = nodes[0]
    return torch.sigmoid(lin(p, "interaction/score", f))


def scores(mode, p, regions, regions_n, tokens, lengths):
    x = F.normalize(lin(p, "image/fc", regions), dim=-1)
    embedded = F.embedding(tokens, p["text/embeddings/word/weight"])
    (a, b), _ = gru(p, ("text/layers/00/forward", "text/layers/00/reverse"), embedded, lengths)
    y = F.normalize((a + b) / 2, dim=-1)
    rows = []
    for i, n in enumerate(regions_n.tolist()):
        rows.append(torch.cat([score(mode, p, vector(p, x[i, :n], y[j, :m], mode == "sgr")) for j, m in enumerate(lengths.tolist())]))
    return torch.stack(rows)


def shapes(mode):
    s = {"image/fc/weight": (WIDTH, IN), "image/fc/bias": (WIDTH,), "text/embeddings/word/weight": (VOCAB, EMBED)}
    for direction in ("forward", "reverse"):
        for k, shape in zip(PARTS, ((3 * WIDTH, EMBED), (3 * WIDTH, WIDTH), (3 * WIDTH,), (3 * WIDTH,))):
            s[f"text/layers/00/{direction}/{k}"] = shape

    def layer(name, out, inputs, bias=True):
        s[f"interaction/{name}/weight"] = (out, inputs)
        if bias:
            s[f"interaction/{name}/bias"] = (out,)

    for side in ("image", "text"):
        layer(side + "/local", WIDTH, WIDTH)
        layer(side + "/global", WIDTH, WIDTH)
        s[f"interaction/{side}/common"] = (WIDTH,)
    layer("local", S, WIDTH)
    layer("global", S, WIDTH)
    layer("score", 1, S)
    if mode == "saf":
        layer("gate", 1, S)
        return s
    for i in range(STEPS):
        for k in ("query", "key", "out"):
            layer(f"graph/{i:02d}/{k}", S, S, k != "key")
    s["gssf/weight"] = s["gssf/attention/weight"] = (WIDTH, WIDTH)
    return s


def main(mode, seed):
    gen = torch.Generator().manual_seed(seed)
    exact = lambda *shape: torch.randn(*shape, generator=gen).double()
    p = {k: (exact(*shape) * 0.6).float().double().requires_grad_() for k, shape in sorted(shapes(mode).items())}
    regions, regions_n = exact(B, R, IN).float().double(), torch.tensor([4, 1, 3, 2, 4])
    tokens, lengths = torch.randint(0, VOCAB, (B, L), generator=gen), torch.tensor([6, 2, 4, 1, 5])
    s = scores(mode, p, regions, regions_n, tokens, lengths)
    loss = hinge(s)
    loss.backward()
    out = {"input/regions": regions, "expect/loss": loss.reshape(1), "expect/scores": s}
    for k, v in p.items():
        out["param/" + k], out["grad/" + k] = v, v.grad
    out = {k: v.detach().float().contiguous() for k, v in out.items()}
    out |= {"input/region_lengths": regions_n, "input/tokens": tokens, "input/lengths": lengths}
    save_file(out, f"model/testdata/host_{mode}.safetensors")
    print(mode, loss.item(), s.std().item())


if __name__ == "__main__":
    main("sgr", 41)
    main("saf", 42)
