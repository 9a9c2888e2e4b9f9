"""Golden steps of statements about two pictures, for model/nlvr_test.go.

Independent PyTorch on the tiny ALBEF of albef.py: fusion layers in twos, the first of two attends to the first picture and the
second to the second, by one product for keys and values. Written in the manner of the published model_nlvr.py and
model_pretrain_nlvr.py: pictures side by side in one pass of the image encoder, a list of two sets of image tokens, soft targets
written out, captions assigned one by one.

Run from the repository root:  python tools/goldens/nlvr.py
Writes model/testdata/{nlvr,assignment}.safetensors.
"""
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import albef
from albef import ALPHA, B, FUSION, L, LAYERS, SIZE, VOCAB, WT, soft_ce

MOMENTUM = ("image", "text", "image_proj", "text_proj", "task_head")


def shapes(head):
    s = {k: v for k, v in albef.shapes().items() if not k.startswith(("itm_head", "text/mlm", "temperature"))}
    for i in range(LAYERS + FUSION, LAYERS + 2 * FUSION):
        for k in list(s):
            if k.startswith(f"text/layers/{LAYERS:02d}/"):
                s[k.replace(f"layers/{LAYERS:02d}", f"layers/{i:02d}")] = s[k]
    for i in range(LAYERS + 1, LAYERS + 2 * FUSION, 2):
        for part in ("weight", "bias"):
            del s[f"text/layers/{i:02d}/crossattention/kv/{part}"]
    layers = {"nlvr": [("task_head/dense", WT, WT), ("task_head/classifier", 2, WT)], "assignment": [("assignment_head", 3, WT)]}
    for name, out, inp in layers[head]:
        s[name + "/weight"], s[name + "/bias"] = (out, inp), (out,)
    return s


def random_params(gen, head):
    p = {}
    for name, shape in sorted(shapes(head).items()):
        x = 0.15 * torch.randn(shape, generator=gen)
        if "norm" in name.split("/")[-2:][0] and name.endswith("weight"):
            x = x + 1
        p[name] = x
    return p


class Model(albef.Model):
    def fusion(self, x, mask, images):
        for i in range(2 * FUSION):
            p, keys = f"text/layers/{LAYERS + i:02d}", f"text/layers/{LAYERS + i - i % 2:02d}"
            q, k, v = self.lin(p + "/attention/qkv", x).chunk(3, -1)
            x = self.norm(p + "/attention/norm", x + self.lin(p + "/attention/output", self.attend(q, k, v, mask)), 1e-12)
            k, v = self.lin(keys + "/crossattention/kv", images[i % len(images)]).chunk(2, -1)
            h = self.attend(self.lin(p + "/crossattention/query", x), k, v, None)
            x = self.norm(p + "/crossattention/norm", x + self.lin(p + "/crossattention/output", h), 1e-12)
            h = self.lin(p + "/ffn/output", F.gelu(self.lin(p + "/ffn/intermediate", x)))
            x = self.norm(p + "/ffn/norm", x + h, 1e-12)
        return x

    def nlvr(self, tokens, mask, images):
        x = self.fusion(self.text(tokens, mask), mask, self.image(images).split(B))
        return self.lin("task_head/classifier", F.relu(self.lin("task_head/dense", x[:, 0])))


def texts(gen):
    lengths = torch.tensor([6, 4, 3, 5])
    mask = (torch.arange(L)[None] < lengths[:, None]).float()
    tokens = torch.randint(5, VOCAB, (B, L), generator=gen) * mask.long()
    tokens[:, 0] = 2
    return tokens, mask, lengths


def write(name, online, twin, out):
    for k, v in online.items():
        out["param/" + k] = v.detach()
        out["grad/" + k] = torch.zeros_like(v) if v.grad is None else v.grad
        if k.split("/")[0] in MOMENTUM:
            out["momentum/" + k] = twin[k] if twin else v.detach()
    save_file({k: v.clone().contiguous() for k, v in out.items()}, f"model/testdata/{name}.safetensors")
    print(name, {k: float(v) for k, v in out.items() if k.startswith("expect/")})


def nlvr():
    gen = torch.Generator().manual_seed(21)
    online = {k: v.requires_grad_() for k, v in random_params(gen, "nlvr").items()}
    twin = random_params(gen, "nlvr")
    tokens, mask, lengths = texts(gen)
    first, second = torch.randn(2, B, 3, SIZE, SIZE, generator=gen)
    labels = torch.tensor([1, 0, -1, 1])
    known = labels >= 0
    both = torch.cat([first, second])
    logits = Model(online).nlvr(tokens, mask, both)
    with torch.no_grad():
        soft = Model(twin).nlvr(tokens, mask, both).softmax(-1)
    loss = (1 - ALPHA) * F.cross_entropy(logits[known], labels[known]) + ALPHA * soft_ce(logits[known], soft[known])
    loss.backward()
    i32 = lambda x: x.to(torch.int32).contiguous()
    write("nlvr", online, twin, {
        "input/images": first, "input/second": second, "input/tokens": i32(tokens), "input/lengths": i32(lengths), "input/labels": i32(labels),
        "expect/loss": loss.detach(), "expect/nlvr": loss.detach(),
        "output/logits": logits.detach(),
        "expect/nlvr_accuracy": (logits[known].argmax(-1) == labels[known]).float().mean(),
    })


def assignment():
    gen = torch.Generator().manual_seed(22)
    online = {k: v.requires_grad_() for k, v in random_params(gen, "assignment").items()}
    tokens, mask, lengths = texts(gen)
    images = torch.randn(B, 3, SIZE, SIZE, generator=gen)
    noise = -torch.log(-torch.log(torch.rand(B, B, generator=gen)))
    answers = torch.tensor([0, 2, 1, 2])
    m = Model(online)
    x = m.image(images)
    with torch.no_grad():
        f = m.project("image_proj", x)
        weights = (f @ f.T / 0.07).softmax(-1).fill_diagonal_(0)
        drawn = (weights.log() + noise).topk(2, dim=1).indices
    pictures = [[], []]
    for b, answer in enumerate(answers):
        if answer == 2:
            pictures[0].append(x[drawn[b, 0]])
            pictures[1].append(x[drawn[b, 1]])
        else:
            pictures[answer].append(x[b])
            pictures[1 - answer].append(x[drawn[b, 0]])
    h = m.fusion(m.text(tokens, mask), mask, [torch.stack(p) for p in pictures])
    logits = m.lin("assignment_head", h[:, 0])
    loss = F.cross_entropy(logits, answers)
    loss.backward()
    i32 = lambda x: x.to(torch.int32).contiguous()
    write("assignment", online, None, {
        "input/images": images, "input/tokens": i32(tokens), "input/lengths": i32(lengths), "input/noise": noise, "input/answers": i32(answers),
        "expect/loss": loss.detach(), "expect/assignment": loss.detach(),
        "expect/assignment_accuracy": (logits.argmax(-1) == answers).float().mean(),
    })


if __name__ == "__main__":
    nlvr()
    assignment()
