"""Makes a model of full size with random weights, as a real package stores it, and what the package computes of some inputs.

    venv/bin/python interop/stored_models.py FAMILY FOLDER

go test ./interop calls it, see docs/interop.md. FOLDER gets the files of the model, vocab.txt with as many tokens as it
has rows of words, and expected.safetensors: the inputs (pixel_values, or input_ids with lengths) and the outputs. The
versions of the packages go to versions.txt.
"""
import json
import sys

import torch
import transformers as T
from safetensors.torch import save_file

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


def vocabulary(n):
    with open(folder + "vocab.txt", "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + ["w%d" % i for i in range(5, n)]) + "\n")


def expect(**tensors):
    save_file({k: v.detach().float().contiguous().clone() if v.is_floating_point() else v.long() for k, v in tensors.items()}, folder + "expected.safetensors")


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


def image(model, registers=0):
    """registers follow the class token; here they are no part of the states."""
    randomise(model).save_pretrained(folder)
    x = torch.randn(ROWS, 3, model.config.image_size, model.config.image_size)
    hidden = model(pixel_values=x).last_hidden_state
    expect(pixel_values=x, image_hidden=torch.cat([hidden[:, :1], hidden[:, 1 + registers:]], 1))


def dual(model, size, x):
    randomise(model).save_pretrained(folder)
    vocabulary(model.config.text_config.vocab_size)
    pixels = torch.randn(ROWS, 3, size, size)
    out = model(input_ids=x, pixel_values=pixels)
    expect(pixel_values=pixels, input_ids=x, lengths=lengths, image_features=out.image_embeds, text_features=out.text_embeds)


with torch.no_grad():
    if family == "bert":
        text(T.BertForMaskedLM(T.BertConfig()))
    elif family == "roberta":
        text(T.RobertaForMaskedLM(T.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)), pad=1)
    elif family == "mpnet":
        text(T.MPNetModel(T.MPNetConfig(max_position_embeddings=514, layer_norm_eps=1e-5)), pad=1)
    elif family == "vit":
        image(T.ViTModel(T.ViTConfig(), add_pooling_layer=False))
    elif family == "deit":
        image(T.DeiTModel(T.DeiTConfig(), add_pooling_layer=False), registers=1)
    elif family == "dinov2":
        image(T.Dinov2Model(T.Dinov2Config(image_size=518, patch_size=14)))
    elif family == "timm":
        import timm
        packages["timm"] = timm.__version__
        model = randomise(timm.create_model("vit_base_patch16_224"))
        save_file(model.state_dict(), folder + "model.safetensors")
        timm.models._hub.save_config_for_hf(model, folder + "config.json")
        x = torch.randn(ROWS, 3, 224, 224)
        expect(pixel_values=x, image_hidden=model.forward_features(x))
    elif family == "clip":
        config = T.CLIPConfig(text_config=dict(bos_token_id=49406, eos_token_id=49407, pad_token_id=0))
        dual(T.CLIPModel(config), 224, ids(49408, 49406, 49407))
    elif family == "siglip":
        config = T.SiglipConfig(text_config=dict(pad_token_id=1))
        dual(T.SiglipModel(config), 224, ids(32000, 5, 1, 1, 64))
    elif family == "open_clip":
        import open_clip
        packages["open_clip"] = open_clip.__version__
        config = open_clip.get_model_config("ViT-B-32")
        model = randomise(open_clip.CLIP(**config))
        save_file(model.state_dict(), folder + "open_clip_model.safetensors")
        with open(folder + "open_clip_config.json", "w") as f:
            json.dump({"model_cfg": config, "preprocess_cfg": {}}, f)
        vocabulary(49408)
        x, pixels = ids(49408, 49406, 49407, length=77), torch.randn(ROWS, 3, 224, 224)
        expect(pixel_values=pixels, input_ids=x, lengths=lengths, image_features=model.encode_image(pixels, normalize=True),
               text_features=model.encode_text(x, normalize=True))
    elif family == "albef":  # its names, of tensors that timm and transformers compute with; of the fusion layers there is no output
        import timm
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
with open(folder + "versions.txt", "w") as f:
    f.write(", ".join(f"{k} {v}" for k, v in packages.items()))
