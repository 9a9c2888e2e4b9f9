"""Makes a model of full size with random weights, as a real package stores it, and what the package computes of some inputs.

    venv/bin/python interop/stored_models.py FAMILY FOLDER

go test ./interop calls it, see docs/interop.md. FOLDER gets the files of the model, vocab.txt with as many tokens as it
has rows of words, and expected.safetensors: the inputs (pixel_values, or input_ids with lengths) and the outputs. Of models
of images it also gets two pictures, picture0.png and picture1.png, what the package's own processor makes of them
(picture_pixels), its outputs, and where the package has another processor that it takes by default what that makes (picture_default). The
versions of the packages go to versions.txt. A package that is not there is told in a line, with the exit status 77.
"""
import json
import sys

try:
    import numpy as np
    import torch
    import transformers as T
    from PIL import Image
    from safetensors.torch import save_file
    if "timm" in sys.argv[1] or sys.argv[1] == "albef":
        import timm
    if "open_clip" in sys.argv[1]:
        import open_clip
except ImportError as e:
    print(e)
    sys.exit(77)

family, folder = sys.argv[1], sys.argv[2].rstrip("/") + "/"
torch.manual_seed(7)
packages = {"torch": torch.__version__, "transformers": T.__version__}
ROWS, WORDS = 2, 12
lengths = torch.tensor([WORDS, WORDS - 5], dtype=torch.int32)


def ids(vocab, first=2, last=None, pad=0, length=WORDS):
    """Two texts, the second one padded."""
    x = torch.randint(5, vocab - 5, (ROWS, length))
    x[:, 0] = first
    for row, n in enumerate(lengths):
        if last is not None:
            x[row, n - 1] = last
        x[row, n:] = pad
    return x


expected = {}  # for expected.safetensors


def expect(**tensors):
    expected.update({k: v.detach().float().contiguous().clone() if v.is_floating_point() else v.long() for k, v in tensors.items()})


def pictures(alpha):
    """A wide and a tall picture, with edges, ramps and noise, the tall one with alpha or without. Of higher ones Pillow 13 resizes the height first."""
    rng, made = np.random.default_rng(7), []
    for i, (h, w) in enumerate(((427, 640), (340, 300))):
        y, x = np.mgrid[0:h, 0:w].astype(float)
        a = np.stack([40 + 0.3 * x + 0.1 * y, 200 - 0.2 * y - 0.1 * x, 90 + 50 * np.sin(x / 9) * np.cos(y / 7)], -1)
        a[80:200, 120:250] = [230, 60, 20]
        p = Image.fromarray(np.clip(a + rng.normal(0, 12, a.shape), 0, 255).astype(np.uint8))
        if alpha and i == 1:
            p.putalpha(Image.fromarray((x * 255 / w).astype(np.uint8)))
        p.save(folder + f"picture{i}.png")
        made.append(p)
    return made


def show(prepare, default=None, alpha=False, **outputs):
    """Adds pictures, prepared, and the outputs of functions of them."""
    made = pictures(alpha)
    pixels = torch.stack([prepare(p) for p in made])
    expect(picture_pixels=pixels, **{"picture_" + k: f(pixels) for k, f in outputs.items()})
    if default:
        expect(picture_default=torch.stack([default(p) for p in made]))


def processed(name, **kwargs):
    """Two functions of a processor of transformers: by Pillow, and the one that it takes by default, by torchvision."""
    def of(processor):
        processor.save_pretrained(folder)
        return lambda p: processor(images=[p], return_tensors="pt")["pixel_values"][0]
    return of(getattr(T, name + "Pil")(**kwargs)), of(getattr(T, name)(**kwargs))


SHORTEST = lambda resized, side: dict(size={"shortest_edge": resized}, crop_size={"height": side, "width": side})
SQUASH = lambda side, **kwargs: dict(size={"height": side, "width": side}, **kwargs)


def vocabulary(n):
    with open(folder + "vocab.txt", "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + ["w%d" % i for i in range(5, n)]) + "\n")


def randomise(model):
    """Takes parameters that begin alike, such as norms and biases, apart."""
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.02 * torch.randn_like(p))
    return model.eval()


def mask():
    return (torch.arange(WORDS)[None] < lengths[:, None]).long()


def text(model, pad=0):
    randomise(model).save_pretrained(folder)
    x = ids(model.config.vocab_size, pad=pad)
    expect(input_ids=x, lengths=lengths, text_hidden=model.base_model(input_ids=x, attention_mask=mask()).last_hidden_state)


def image(model, *processors, registers=0):
    """registers follow the class token; here they are no part of the states."""
    randomise(model).save_pretrained(folder)
    x = torch.randn(ROWS, 3, model.config.image_size, model.config.image_size)

    def run(x):
        hidden = model(pixel_values=x).last_hidden_state
        return torch.cat([hidden[:, :1], hidden[:, 1 + registers:]], 1)
    expect(pixel_values=x, image_hidden=run(x))
    show(*processors, image_hidden=run)


def dual(model, size, x, *processors):
    randomise(model).save_pretrained(folder)
    vocabulary(model.config.text_config.vocab_size)
    pixels = torch.randn(ROWS, 3, size, size)
    out = model(input_ids=x, pixel_values=pixels)
    expect(pixel_values=pixels, input_ids=x, lengths=lengths, image_features=out.image_embeds, text_features=out.text_embeds)
    show(*processors, alpha=True, image_features=lambda pixels: model(input_ids=x, pixel_values=pixels).image_embeds)


with torch.no_grad():
    if family == "bert":
        text(T.BertForMaskedLM(T.BertConfig()))
    elif family == "roberta":
        text(T.RobertaForMaskedLM(T.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)), pad=1)
    elif family == "mpnet":
        text(T.MPNetModel(T.MPNetConfig(max_position_embeddings=514, layer_norm_eps=1e-5)), pad=1)
    elif family == "vit":
        image(T.ViTModel(T.ViTConfig(), add_pooling_layer=False), *processed("ViTImageProcessor", **SQUASH(224)))
    elif family == "deit":
        image(T.DeiTModel(T.DeiTConfig(), add_pooling_layer=False), *processed("DeiTImageProcessor", **SQUASH(256, crop_size={"height": 224, "width": 224})), registers=1)
    elif family == "dinov2":
        image(T.Dinov2Model(T.Dinov2Config(image_size=518, patch_size=14)), *processed("BitImageProcessor", **SHORTEST(592, 518)))
    elif family == "timm":
        packages["timm"] = timm.__version__
        model = randomise(timm.create_model("vit_base_patch16_224"))
        save_file(model.state_dict(), folder + "model.safetensors")
        timm.models._hub.save_config_for_hf(model, folder + "config.json")
        x = torch.randn(ROWS, 3, 224, 224)
        expect(pixel_values=x, image_hidden=model.forward_features(x))
        show(timm.data.create_transform(**timm.data.resolve_data_config({}, model=model)), image_hidden=model.forward_features)
    elif family == "clip":
        config = T.CLIPConfig(text_config=dict(bos_token_id=49406, eos_token_id=49407, pad_token_id=0))
        dual(T.CLIPModel(config), 224, ids(49408, 49406, 49407), *processed("CLIPImageProcessor", **SHORTEST(224, 224)))
    elif family == "siglip":
        config = T.SiglipConfig(text_config=dict(pad_token_id=1))
        dual(T.SiglipModel(config), 224, ids(32000, 5, 1, 1, 64), *processed("SiglipImageProcessor", **SQUASH(224, resample=3)))
    elif family in ("open_clip", "open_clip_timm"):
        packages["open_clip"] = open_clip.__version__
        siglip = family == "open_clip_timm"
        name, vocab, length = ("ViT-B-16-SigLIP", 32000, 64) if siglip else ("ViT-B-32", 49408, 77)
        config = open_clip.get_model_config(name)
        model = randomise(open_clip.create_model(name))
        prepare = dict(mean=[0.5] * 3, std=[0.5] * 3, resize_mode="squash") if siglip else {}
        save_file(model.state_dict(), folder + "open_clip_model.safetensors")
        with open(folder + "open_clip_config.json", "w") as f:
            json.dump({"model_cfg": config, "preprocess_cfg": prepare | dict(size=224)}, f)
        vocabulary(vocab)
        x, pixels = ids(vocab, 5, 1, 1, length) if siglip else ids(vocab, 49406, 49407, length=length), torch.randn(ROWS, 3, 224, 224)
        expect(pixel_values=pixels, input_ids=x, lengths=lengths, image_features=model.encode_image(pixels, normalize=True),
               text_features=model.encode_text(x, normalize=True))
        show(open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**prepare), is_train=False), image_features=lambda pixels: model.encode_image(pixels, normalize=True))
    elif family == "albef":  # its names, of tensors that timm and transformers compute with; of the fusion layers there is no output
        packages["timm"] = timm.__version__
        visual = randomise(timm.create_model("vit_base_patch16_224", img_size=256, num_classes=0))
        bert = randomise(T.BertForMaskedLM(T.BertConfig()))
        state = {"visual_encoder." + k: v for k, v in visual.state_dict().items()} | {"text_encoder." + k: v for k, v in bert.state_dict().items()}
        for i in range(6, 12):
            for part in ("self.query", "self.key", "self.value", "output.dense", "output.LayerNorm"):
                state[f"text_encoder.bert.encoder.layer.{i}.crossattention.{part}.weight"] = torch.randn(768, *(() if part.endswith("Norm") else (768,)))
                state[f"text_encoder.bert.encoder.layer.{i}.crossattention.{part}.bias"] = torch.randn(768)
        for name, n in (("vision_proj", 256), ("text_proj", 256), ("itm_head", 2)):
            state[name + ".weight"], state[name + ".bias"] = torch.randn(n, 768), torch.randn(n)
        state["temp"] = torch.tensor(0.07)
        torch.save({"model": state}, folder + "ALBEF.pth")
        vocabulary(30522)
        x, pixels = ids(30522), torch.randn(ROWS, 3, 256, 256)
        hidden, own = bert.bert(input_ids=x, attention_mask=mask(), output_hidden_states=True).hidden_states[6], visual.forward_features(pixels)
        normal = torch.nn.functional.normalize
        expect(pixel_values=pixels, input_ids=x, lengths=lengths, image_hidden=own, text_hidden=hidden,
               image_features=normal(own[:, 0] @ state["vision_proj.weight"].T + state["vision_proj.bias"], dim=-1),
               text_features=normal(hidden[:, 0] @ state["text_proj.weight"].T + state["text_proj.bias"], dim=-1))
    else:
        sys.exit("there is no family " + family)
save_file(expected, folder + "expected.safetensors")
with open(folder + "versions.txt", "w") as f:
    f.write(", ".join(f"{k} {v}" for k, v in packages.items()))
