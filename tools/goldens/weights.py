"""Writes weights/testdata: tiny models with random weights, as real packages store them, and what these
packages compute of some inputs.

    venv/bin/python tools/goldens/weights.py             # from the root of the repository

Beside torch it needs transformers, timm and open_clip_torch. Last run with torch 2.15, transformers 5.23,
timm 1.0.31, open_clip 3.3. A folder has the files of a model and expected.safetensors: the inputs (pixel_values,
or input_ids with lengths) and the outputs: hidden (the last hidden states of the package, image_hidden and
text_hidden where there are two towers), pooled, features.
"""
import json
import os
import shutil

import open_clip
import timm
import torch
import transformers as T
from safetensors.torch import save_file

ROOT = "weights/testdata/"
WIDTH, LAYERS, HEADS, MLP, DIM = 8, 2, 2, 16, 6
VOCAB, POSITIONS, WORDS = 24, 6, 6
SIZE, PATCH = 12, 4
TEXT = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=MLP, vocab_size=VOCAB)
IMAGE = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=MLP, image_size=SIZE, patch_size=PATCH)
TIMM = dict(img_size=SIZE, patch_size=PATCH, embed_dim=WIDTH, depth=LAYERS, num_heads=HEADS, mlp_ratio=MLP / WIDTH)

gen = torch.Generator().manual_seed(17)
pixels = torch.randn(2, 3, SIZE, SIZE, generator=gen)
lengths = torch.tensor([WORDS, WORDS - 2], dtype=torch.int32)


def randomise(model):
    """Gives every parameter a value of its own, layer norms and biases too."""
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            x = torch.randn(p.shape, generator=gen)
            p.copy_(0.2 * x + (1 if "norm" in name.lower() and name.endswith("weight") else 0))
    return model.eval()


def ids(pad, first=2, last=None):
    """Two texts, the second one padded."""
    x = torch.randint(5, VOCAB - 2, (2, WORDS), generator=gen)
    x[:, 0] = first
    for row, n in enumerate(lengths):
        if last is not None:
            x[row, n - 1] = last
        x[row, n:] = pad
    return x


def mask():
    return (torch.arange(WORDS)[None] < lengths[:, None]).long()


def folder(name):
    shutil.rmtree(ROOT + name, ignore_errors=True)
    os.makedirs(ROOT + name)
    return ROOT + name + "/"


def expect(name, **tensors):
    save_file({k: v.detach().contiguous().clone() for k, v in tensors.items() if v is not None}, ROOT + name + "/expected.safetensors")


def preprocess(name, mean, std, crop, resample):
    size = {"shortest_edge": SIZE} if crop else {"height": SIZE, "width": SIZE}
    p = dict(do_resize=True, size=size, resample=resample, do_rescale=True, rescale_factor=1 / 255, do_normalize=True, image_mean=mean, image_std=std)
    if crop:
        p |= dict(do_center_crop=True, crop_size={"height": SIZE, "width": SIZE})
    with open(ROOT + name + "/preprocessor_config.json", "w") as f:
        json.dump(p, f, indent=1)


HALF, IMAGENET = [0.5] * 3, ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CLIP = ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])


def text_model(name, model, base, pad):
    """A model of words alone: hidden states and the first token's."""
    randomise(model).save_pretrained(folder(name))
    x = ids(pad)
    out = base(model)(input_ids=x, attention_mask=mask())
    expect(name, input_ids=x.int(), lengths=lengths, hidden=out.last_hidden_state)


def image_model(name, model, base, *prepared):
    randomise(model).save_pretrained(folder(name))
    preprocess(name, *prepared)
    out = base(model)(pixel_values=pixels)
    expect(name, pixel_values=pixels, hidden=out.last_hidden_state, pooled=out.last_hidden_state[:, 0])


text_model("bert", T.BertForPreTraining(T.BertConfig(**TEXT, max_position_embeddings=POSITIONS)), lambda m: m.bert, 0)
text_model("roberta", T.RobertaForMaskedLM(T.RobertaConfig(**TEXT, max_position_embeddings=POSITIONS + 2, type_vocab_size=1, layer_norm_eps=1e-5)), lambda m: m.roberta, 1)
text_model("mpnet", T.MPNetModel(T.MPNetConfig(**TEXT, max_position_embeddings=POSITIONS + 2, layer_norm_eps=1e-5)), lambda m: m, 1)
image_model("vit", T.ViTForImageClassification(T.ViTConfig(**IMAGE)), lambda m: m.vit, HALF, HALF, False, 2)
image_model("deit", T.DeiTForImageClassificationWithTeacher(T.DeiTConfig(**IMAGE)), lambda m: m.deit, *IMAGENET, True, 3)
image_model("dinov2", T.Dinov2Model(T.Dinov2Config(**IMAGE, mlp_ratio=2)), lambda m: m, *IMAGENET, True, 3)
image_model("dinov2_registers", T.Dinov2WithRegistersModel(T.Dinov2WithRegistersConfig(**IMAGE, num_register_tokens=2, use_swiglu_ffn=True, mlp_ratio=2)), lambda m: m, *IMAGENET, True, 3)

# Dual encoders of Hugging Face.
ends = dict(bos_token_id=VOCAB - 2, eos_token_id=VOCAB - 1, pad_token_id=1, max_position_embeddings=POSITIONS)
for name, model, prepared, x in (
        ("clip", T.CLIPModel(T.CLIPConfig(text_config=TEXT | ends, vision_config=IMAGE, projection_dim=DIM)), (*CLIP, True, 3), ids(0, VOCAB - 2, VOCAB - 1)),
        ("siglip", T.SiglipModel(T.SiglipConfig(text_config=TEXT | ends, vision_config=IMAGE)), (HALF, HALF, False, 3), ids(1))):
    randomise(model).save_pretrained(folder(name))
    preprocess(name, *prepared)
    image, text = model.vision_model(pixel_values=pixels), model.text_model(input_ids=x)
    out = model(input_ids=x, pixel_values=pixels)
    expect(name, pixel_values=pixels, input_ids=x.int(), lengths=lengths, image_hidden=image.last_hidden_state, text_hidden=text.last_hidden_state,
           image_pooled=image.pooler_output, text_pooled=text.pooler_output, image_features=out.image_embeds, text_features=out.text_embeds)

# Image towers of timm: as the hub has them, and as files of state dicts.
for name, arch, classes in (("timm", "vit_base_patch16_224", 3), ("timm_registers", "vit_small_patch14_reg4_dinov2", 0),
                         ("timm_siglip", "vit_base_patch16_siglip_224", 0), ("deit_distilled", "deit_tiny_distilled_patch16_224", 3)):
    model = randomise(timm.create_model(arch, **TIMM, num_classes=classes))
    path = folder(name)
    if name == "deit_distilled":
        torch.save({"model": model.state_dict()}, path + "deit.pth", _use_new_zipfile_serialization=False)
    else:
        save_file(model.state_dict(), path + "model.safetensors")
        timm.models._hub.save_config_for_hf(model, path + "config.json")
    hidden = model.forward_features(pixels)
    expect(name, pixel_values=pixels, hidden=hidden, pooled=model.attn_pool(hidden) if model.attn_pool is not None else hidden[:, 0])

# open_clip: as the hub has it, and as its checkpoints of training, in half precision.
config = dict(embed_dim=DIM, quick_gelu=True, vision_cfg=dict(image_size=SIZE, layers=LAYERS, width=WIDTH, head_width=WIDTH // HEADS, patch_size=PATCH, mlp_ratio=MLP / WIDTH),
              text_cfg=dict(context_length=POSITIONS, vocab_size=VOCAB, width=WIDTH, heads=HEADS, layers=LAYERS, mlp_ratio=MLP / WIDTH))
model = randomise(open_clip.CLIP(**config))
path = folder("open_clip")
save_file(model.state_dict(), path + "open_clip_model.safetensors")
with open(path + "open_clip_config.json", "w") as f:
    json.dump({"model_cfg": config, "preprocess_cfg": {"mean": CLIP[0], "std": CLIP[1]}}, f, indent=1)
x = ids(0, VOCAB - 2, VOCAB - 1)
expect("open_clip", pixel_values=pixels, input_ids=x.int(), lengths=lengths, image_features=model.encode_image(pixels, normalize=True), text_features=model.encode_text(x, normalize=True))
path = folder("open_clip_checkpoint")
custom = open_clip.CustomTextCLIP(**config)
custom.load_state_dict({(k if k.startswith("visual.") or k == "logit_scale" else "text." + k): v for k, v in model.state_dict().items()})
state = {"module." + k: v.bfloat16() for k, v in custom.state_dict().items()}
torch.save({"epoch": 3, "name": "a", "state_dict": state, "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}}}, path + "epoch_3.pt")

# ALBEF: the names of its checkpoints, of tensors that timm and transformers compute with. Two text layers and one of
# fusion, for which there is no output.
visual = randomise(timm.create_model("vit_base_patch16_224", **TIMM, num_classes=0))
bert = randomise(T.BertForMaskedLM(T.BertConfig(**TEXT | dict(num_hidden_layers=3), max_position_embeddings=POSITIONS)))
state = {"visual_encoder." + k: v for k, v in visual.state_dict().items()} | {"text_encoder." + k: v for k, v in bert.state_dict().items()}
for part in ("self.query", "self.key", "self.value", "output.dense", "output.LayerNorm"):
    shape = () if part.endswith("Norm") else (WIDTH,)
    state[f"text_encoder.bert.encoder.layer.2.crossattention.{part}.weight"] = torch.randn(WIDTH, *shape, generator=gen)
    state[f"text_encoder.bert.encoder.layer.2.crossattention.{part}.bias"] = torch.randn(WIDTH, generator=gen)
state["text_encoder.bert.embeddings.position_ids"] = torch.arange(POSITIONS)[None]
for name, n in (("vision_proj", DIM), ("text_proj", DIM), ("itm_head", 2)):
    state[name + ".weight"], state[name + ".bias"] = torch.randn(n, WIDTH, generator=gen), torch.randn(n, generator=gen)
modules = ("visual_encoder", "text_encoder", "vision_proj", "text_proj")
state |= {k.replace(m + ".", m + "_m.", 1): v + 1 if v.is_floating_point() else v for m in modules for k, v in list(state.items()) if k.startswith(m + ".")}
state |= {"temp": torch.tensor(0.07), "image_queue": torch.randn(DIM, 4, generator=gen), "text_queue": torch.randn(DIM, 4, generator=gen), "queue_ptr": torch.zeros(1, dtype=torch.long)}
path = folder("albef")
torch.save({"model": state, "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}}, "epoch": 3}, path + "checkpoint_03.pth")
x = ids(0)
hidden = bert.bert(input_ids=x, attention_mask=mask(), output_hidden_states=True).hidden_states[2]
expect("albef", pixel_values=pixels, input_ids=x.int(), lengths=lengths, image_hidden=visual.forward_features(pixels), text_hidden=hidden)
tuned = {k.replace("text_encoder.bert.", "text_encoder.").replace("text_encoder_m.bert.", "text_encoder_m."): v.half() if v.is_floating_point() else v
         for k, v in state.items() if ".cls." not in k and "_m." not in k} | {"idx_queue": torch.full((1, 4), -100)}
torch.save({"model": tuned}, folder("albef_retrieval") + "checkpoint_best.pth")

# open_clip around towers of timm: SigLIP, and a vision transformer with a projection beside CLIP's text tower.
for name, arch, vision, words, bias in (
        ("open_clip_siglip", "vit_base_patch16_siglip_224", dict(timm_pool="map", timm_proj="none"),
         dict(no_causal_mask=True, proj_bias=True, pool_type="last", norm_kwargs=dict(eps=1e-6)), -10),
        ("open_clip_vit", "vit_base_patch16_224", dict(timm_pool="token", timm_proj="linear"), {}, None)):
    def tiny(pretrained=False, arch=arch, **kwargs):
        return timm.create_model(arch, pretrained=False, **TIMM, **kwargs)
    tiny.__name__, tiny.__module__ = "tiny_" + name, "timm.models.vision_transformer"
    timm.models.register_model(tiny)
    config = dict(embed_dim=WIDTH if vision["timm_proj"] == "none" else DIM, init_logit_bias=bias,
                  vision_cfg=dict(image_size=SIZE, timm_model_name=tiny.__name__, timm_model_pretrained=False, **vision),
                  text_cfg=dict(context_length=POSITIONS, vocab_size=VOCAB, width=WIDTH, heads=HEADS, layers=LAYERS, mlp_ratio=MLP / WIDTH, **words))
    model = randomise(open_clip.CustomTextCLIP(**config))
    config["vision_cfg"]["timm_model_name"] = arch
    path = folder(name)
    save_file(model.state_dict(), path + "open_clip_model.safetensors")
    prepare = dict(mean=HALF, std=HALF, resize_mode="squash") if bias else dict(mean=CLIP[0], std=CLIP[1])
    with open(path + "open_clip_config.json", "w") as f:
        json.dump({"model_cfg": config | dict(custom_text=True), "preprocess_cfg": prepare | dict(size=[SIZE, SIZE], interpolation="bicubic")}, f, indent=1)
    x = ids(1) if bias else ids(0, VOCAB - 2, VOCAB - 1)
    expect(name, pixel_values=pixels, input_ids=x.int(), lengths=lengths, image_features=model.encode_image(pixels, normalize=True), text_features=model.encode_text(x, normalize=True))
for root, _, names in os.walk(ROOT):
    for name in names:
        if name in ("README.md", "generation_config.json"):
            os.remove(os.path.join(root, name))
