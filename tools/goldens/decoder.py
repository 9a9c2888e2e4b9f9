"""Golden values of the decoder of answers and captions for model/decoder_golden_test.go.

Towers and fusion layers are those of albef.py. The decoder is written out here in the manner
of the published code: whole answers, padded, with additive masks, the states of a question
repeated for each of its answers, and the loss of an answer summed over its tokens.
Sequences of beam search come from a plain implementation here, and for answers from
generate of transformers too, with the same weights: both must agree.

Run from the repository root:  python tools/goldens/decoder.py
Writes model/testdata/decoder_{vqa,captioning}.safetensors.
"""
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import albef
from albef import ALPHA, B, FUSION, HEADS, L, POSITIONS, SIZE, VOCAB, WI, WT, Model

A, LA = 3, 5  # answers of a question, tokens of an answer
BEGIN, END = 2, 3


def decoder_shapes(width):
    s = {}

    def lin(name, out, inp):
        s[name + "/weight"], s[name + "/bias"] = (out, inp), (out,)

    def norm(name, d):
        s[name + "/weight"], s[name + "/bias"] = (d,), (d,)

    s["decoder/embeddings/word/weight"] = (VOCAB, WT)
    s["decoder/embeddings/token_type/weight"] = (2, WT)
    s["decoder/embeddings/position/weight"] = (POSITIONS, WT)
    norm("decoder/embeddings/norm", WT)
    for i in range(FUSION):
        p = f"decoder/layers/{i:02d}"
        lin(p + "/attention/qkv", 3 * WT, WT)
        lin(p + "/attention/output", WT, WT)
        norm(p + "/attention/norm", WT)
        lin(p + "/crossattention/query", WT, WT)
        lin(p + "/crossattention/kv", 2 * WT, width)
        lin(p + "/crossattention/output", WT, WT)
        norm(p + "/crossattention/norm", WT)
        lin(p + "/ffn/intermediate", 4 * WT, WT)
        lin(p + "/ffn/output", WT, 4 * WT)
        norm(p + "/ffn/norm", WT)
    lin("decoder/mlm/dense", WT, WT)
    norm("decoder/mlm/norm", WT)
    s["decoder/mlm/bias"] = (VOCAB,)
    return s


def random_params(gen, width):
    p = albef.random_params(gen)
    for name, shape in sorted(decoder_shapes(width).items()):
        x = 0.2 * torch.randn(shape, generator=gen)
        if "norm" in name.split("/")[-2] and name.endswith("weight"):
            x = x + 1
        p[name] = x
    p["decoder/embeddings/position/weight"] *= 5  # so that texts do not repeat a word
    p["decoder/mlm/bias"][END] += 2
    return p


def attend(q, k, v, mask):
    def heads(x):
        return x.view(x.shape[0], x.shape[1], HEADS, -1).transpose(1, 2)

    q, k, v = heads(q), heads(k), heads(v)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask
    o = (s.softmax(-1) @ v).transpose(1, 2)
    return o.reshape(o.shape[0], o.shape[1], -1)


def decode(m, ids, mask, states, state_mask):
    """Logits (R, n, V) of whole texts."""
    n = ids.shape[1]
    x = m.p["decoder/embeddings/word/weight"][ids] + m.p["decoder/embeddings/token_type/weight"][0]
    x = m.norm("decoder/embeddings/norm", x + m.p["decoder/embeddings/position/weight"][:n], 1e-12)
    causal = torch.tril(torch.ones(n, n))
    see = (1 - causal[None, None] * mask[:, None, None, :].float()) * -10000.0
    other = (1 - state_mask[:, None, None, :].float()) * -1e9
    for i in range(FUSION):
        p = f"decoder/layers/{i:02d}"
        q, k, v = m.lin(p + "/attention/qkv", x).chunk(3, -1)
        x = m.norm(p + "/attention/norm", x + m.lin(p + "/attention/output", attend(q, k, v, see)), 1e-12)
        q = m.lin(p + "/crossattention/query", x)
        k, v = m.lin(p + "/crossattention/kv", states).chunk(2, -1)
        x = m.norm(p + "/crossattention/norm", x + m.lin(p + "/crossattention/output", attend(q, k, v, other)), 1e-12)
        h = m.lin(p + "/ffn/output", F.gelu(m.lin(p + "/ffn/intermediate", x)))
        x = m.norm(p + "/ffn/norm", x + h, 1e-12)
    x = m.norm("decoder/mlm/norm", F.gelu(m.lin("decoder/mlm/dense", x)), 1e-12)
    return x @ m.p["decoder/embeddings/word/weight"].T + m.p["decoder/mlm/bias"]


def losses(logits, soft, ids, mask):
    """The loss of each text, summed over its tokens behind the first."""
    logits, labels = logits[:, :-1], ids[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
    hard = F.cross_entropy(logits.reshape(-1, VOCAB), labels.reshape(-1), reduction="none").view(labels.shape)
    if soft is None:
        return hard.sum(1)
    soft = -(F.log_softmax(logits, -1) * soft[:, :-1].softmax(-1)).sum(-1) * (labels != -100)
    return ((1 - ALPHA) * hard + ALPHA * soft).sum(1)


def rank(m, candidates, states, state_mask):
    n = max(map(len, candidates))
    ids = torch.tensor([c + [0] * (n - len(c)) for c in candidates])
    mask = torch.tensor([[1] * len(c) + [0] * (n - len(c)) for c in candidates])
    rows = []
    for s, k in zip(states, state_mask):
        r = len(candidates)
        rows.append(-losses(decode(m, ids, mask, s.expand(r, *s.shape), k.expand(r, -1)), None, ids, mask))
    return torch.stack(rows)


def beam_search(m, state, state_mask, beams, least, most, penalty):
    live, done = [(0.0, [])], []
    for step in range(most):
        ways = []
        for total, words in live:
            ids = torch.tensor([[BEGIN] + words])
            p = F.log_softmax(decode(m, ids, torch.ones_like(ids), state[None], state_mask[None])[0, -1], -1)
            if step < least:
                p[END] = -math.inf
            ways += [(total + float(v), words, t) for t, v in enumerate(p)]
        ways = sorted(ways, key=lambda w: -w[0])[: 2 * beams]
        live = []
        for rank, (total, words, token) in enumerate(ways):
            if len(live) == beams:
                break
            if token == END:
                if rank < beams:
                    done.append((total / (step + 1) ** penalty, words))
            else:
                live.append((total, words + [token]))
        done = sorted(done, key=lambda d: -d[0])[:beams]
        if not live or len(done) == beams and done[-1][0] >= live[0][0] / (step + 1) ** penalty:
            live = []
            break
    done += [(t / len(w) ** penalty, w) for t, w in live]
    return max(done, key=lambda d: d[0])[1]


SEARCHES = [(1, 0, 6, 1.0), (2, 0, 6, 1.0), (3, 0, 8, 1.0), (3, 2, 8, 0.0), (4, 1, 9, 2.0), (3, 3, 4, 1.0)]


def transformer(p):
    """The decoder as a model of transformers."""
    from transformers import BertConfig, BertLMHeadModel

    c = BertConfig(vocab_size=VOCAB, hidden_size=WT, num_hidden_layers=FUSION, num_attention_heads=HEADS, intermediate_size=4 * WT,
                   max_position_embeddings=POSITIONS, layer_norm_eps=1e-12, is_decoder=True, add_cross_attention=True)
    c._attn_implementation = "eager"
    model = BertLMHeadModel(c).eval()
    d = {k[len("decoder/"):]: v.detach() for k, v in p.items() if k.startswith("decoder/")}
    s = {"bert.embeddings.word_embeddings.weight": d["embeddings/word/weight"], "cls.predictions.decoder.weight": d["embeddings/word/weight"],
         "bert.embeddings.token_type_embeddings.weight": d["embeddings/token_type/weight"],
         "bert.embeddings.position_embeddings.weight": d["embeddings/position/weight"],
         "cls.predictions.bias": d["mlm/bias"], "cls.predictions.decoder.bias": d["mlm/bias"]}
    for kind in ("weight", "bias"):
        s[f"bert.embeddings.LayerNorm.{kind}"] = d[f"embeddings/norm/{kind}"]
        s[f"cls.predictions.transform.dense.{kind}"] = d[f"mlm/dense/{kind}"]
        s[f"cls.predictions.transform.LayerNorm.{kind}"] = d[f"mlm/norm/{kind}"]
        for i in range(FUSION):
            a, b = f"bert.encoder.layer.{i}", f"layers/{i:02d}"
            for n, v in zip(("query", "key", "value"), d[f"{b}/attention/qkv/{kind}"].chunk(3)):
                s[f"{a}.attention.self.{n}.{kind}"] = v
            s[f"{a}.crossattention.self.query.{kind}"] = d[f"{b}/crossattention/query/{kind}"]
            for n, v in zip(("key", "value"), d[f"{b}/crossattention/kv/{kind}"].chunk(2)):
                s[f"{a}.crossattention.self.{n}.{kind}"] = v
            for x in ("attention", "crossattention"):
                s[f"{a}.{x}.output.dense.{kind}"] = d[f"{b}/{x}/output/{kind}"]
                s[f"{a}.{x}.output.LayerNorm.{kind}"] = d[f"{b}/{x}/norm/{kind}"]
            s[f"{a}.intermediate.dense.{kind}"] = d[f"{b}/ffn/intermediate/{kind}"]
            s[f"{a}.output.dense.{kind}"] = d[f"{b}/ffn/output/{kind}"]
            s[f"{a}.output.LayerNorm.{kind}"] = d[f"{b}/ffn/norm/{kind}"]
    missing, unexpected = model.load_state_dict(s, strict=False)
    assert not unexpected and all("position_ids" in m for m in missing), (missing, unexpected)
    return model


def generate(model, state, state_mask, beams, least, most, penalty):
    ids = torch.tensor([[BEGIN]])
    with torch.no_grad():
        out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), encoder_hidden_states=state[None], encoder_attention_mask=state_mask[None],
                             num_beams=beams, min_new_tokens=least or None, max_new_tokens=most, length_penalty=penalty, early_stopping=False,
                             eos_token_id=END, pad_token_id=0, bos_token_id=BEGIN, do_sample=False, use_cache=False)
    words = out[0, 1:].tolist()
    return words[: words.index(END)] if END in words else words


def main(mode):
    gen = torch.Generator().manual_seed(21 if mode == "vqa" else 22)
    width = WT if mode == "vqa" else WI
    online = {k: v.requires_grad_() for k, v in random_params(gen, width).items()}
    twin = random_params(gen, width)
    on, mo = Model(online), Model(twin)
    images = torch.randn(B, 3, SIZE, SIZE, generator=gen)
    images[2] = images[0]  # two questions about one image
    lengths = torch.tensor([6, 4, 3, 5])
    mask = (torch.arange(L)[None] < lengths[:, None]).long()
    tokens = torch.randint(5, VOCAB, (B, L), generator=gen) * mask
    tokens[:, 0] = BEGIN

    if mode == "vqa":
        counts = torch.tensor([[5, 3, 4], [3, 0, 0], [4, 4, 0], [2, 3, 5]])
        weights = torch.tensor([[0.6, 0.3, 0.1], [1.0, 0, 0], [0.5, 0.5, 0], [0.9, 0.6, 0.3]])
        answers = torch.randint(5, VOCAB, (B, A, LA), generator=gen)
        inside = torch.arange(LA) < counts[..., None]
        answers = answers * inside
        answers[..., 0] = BEGIN * (counts > 0)
        for b in range(B):
            for a in range(A):
                if counts[b, a] > 0:
                    answers[b, a, counts[b, a] - 1] = END
        states = on.fusion(on.text(tokens, mask.float()), mask.float(), on.image(images))
        with torch.no_grad():
            soft_states = mo.fusion(mo.text(tokens, mask.float()), mask.float(), mo.image(images))
        kept = [(b, a) for b in range(B) for a in range(A) if counts[b, a] > 0]
        q = torch.tensor([b for b, _ in kept])
        ids = torch.stack([answers[b, a] for b, a in kept])
        seen = torch.stack([inside[b, a] for b, a in kept]).long()
        w, state_mask = torch.stack([weights[b, a] for b, a in kept]), mask
    else:
        states = on.image(images)
        with torch.no_grad():
            soft_states = mo.image(images)
        q = torch.arange(B)
        ids, seen = F.pad(tokens, (0, 1)), (torch.arange(L + 1)[None] <= lengths[:, None]).long()
        ids[torch.arange(B), lengths] = END
        w, state_mask = torch.ones(B), torch.ones(B, states.shape[1], dtype=torch.long)
    with torch.no_grad():
        soft = decode(mo, ids, seen, soft_states[q], state_mask[q])
    loss = (w * losses(decode(on, ids, seen, states[q], state_mask[q]), soft, ids, seen)).sum() / B
    loss.backward()

    states = states.detach()
    candidates = [[BEGIN, 7, END], [BEGIN, 8, 9, END], [BEGIN, 7, 9, 11, END], [BEGIN, 7, 9, END], [BEGIN, 30, END], [BEGIN, 8, END], [BEGIN, END]]
    with torch.no_grad():
        scores = rank(on, candidates, states, state_mask)
    i32 = lambda x: x.to(torch.int32).contiguous()
    out = {"input/images": images, "input/tokens": i32(tokens), "input/lengths": i32(lengths), "expect/loss": loss.detach(), f"expect/{mode}": loss.detach(), "expect/scores": scores}
    if mode == "vqa":
        out |= {"input/answers": i32(answers), "input/answers/lengths": i32(counts), "input/answers/weights": weights}
        published = transformer(online)
    with torch.no_grad():
        for k, search in enumerate(SEARCHES):
            for b in range(B):
                words = beam_search(on, states[b], state_mask[b], *search)
                if mode == "vqa":
                    other = generate(published, states[b], state_mask[b], *search)
                    assert words == other, (search, b, words, other)
                out[f"expect/words/{k}/{b}"] = torch.tensor(words + [-1], dtype=torch.int32)
                print(mode, search, b, words)
    for k, v in online.items():
        out["param/" + k] = v.detach()
        out["grad/" + k] = torch.zeros_like(v) if v.grad is None else v.grad
        if k.split("/")[0] in ("image", "text", "image_proj", "text_proj", "decoder"):
            out["momentum/" + k] = twin[k]
    save_file({k: v.clone().contiguous() for k, v in out.items()}, f"model/testdata/decoder_{mode}.safetensors")
    print(mode, loss.item(), scores[0].tolist())


if __name__ == "__main__":
    main("vqa")
    main("captioning")
