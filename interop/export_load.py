"""Loads folders that trainer export wrote in the programs that they are for, and compares what these compute.

    python interop/export_load.py jobs.json

jobs.json is a list of {"name", "form", "folder", "inputs", "text", "ids"}; inputs is a safetensors file with pixel_values,
input_ids, attention_mask, and what the model makes of them: image_embeds, text_embeds (after the heads), image_pooled,
text_pooled (before). text is tokenized to ids. Prints a line of JSON for each job: the largest differences by name, or an error, or the package that is not there.
"""
import json
import os
import sys
import traceback

import numpy as np
import torch
from safetensors.torch import load_file


PICTURE = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)


def unit(x):
    return torch.nn.functional.normalize(x, dim=-1)


def read(path):
    with open(path) as f:
        return json.load(f)


def hf(folder, b, job):
    import transformers

    config = read(folder + "/config.json")
    name = config["architectures"][0]
    model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    model.eval()
    lacks = [k for k in info["missing_keys"] if not any(part in k for part in ("pooler", "mask_token", "num_batches_tracked"))]
    if config.get("num_register_tokens") == 0:  # of which there are no rows
        lacks = [k for k in lacks if "register_tokens" not in k]
    if lacks or info["unexpected_keys"] or info["mismatched_keys"]:
        raise ValueError(f"missing {lacks}, unexpected {info['unexpected_keys']}, of other shapes {info['mismatched_keys']}")
    if os.path.exists(folder + "/tokenizer.json"):
        encoded = transformers.AutoTokenizer.from_pretrained(folder)(job["text"])
        if encoded["input_ids"] != job["ids"]:
            raise ValueError(f"{job['text']!r} becomes {encoded['input_ids']}, want {job['ids']}")
        if ("attention_mask" in encoded) == ("Siglip" in name):  # which reads padding like words
            raise ValueError(f"the tokenizer of a {name} gives {list(encoded)}")
    if os.path.exists(folder + "/preprocessor_config.json"):
        size = transformers.AutoImageProcessor.from_pretrained(folder)(images=[PICTURE], return_tensors="pt")["pixel_values"].shape
        if size != (1, *b["pixel_values"].shape[1:]):
            raise ValueError(f"images become {size}")
    image, text = dict(pixel_values=b["pixel_values"]), dict(input_ids=b["input_ids"])
    if "Siglip" not in name:
        text["attention_mask"] = b["attention_mask"]
    if name in ("CLIPModel", "SiglipModel"):
        out = model(**image, **text)
        return dict(image_embeds=out.image_embeds, text_embeds=out.text_embeds)
    if name == "CLIPVisionModelWithProjection":
        return dict(image_embeds=unit(model(**image).image_embeds))
    if name == "CLIPTextModelWithProjection":
        return dict(text_embeds=unit(model(**text).text_embeds))
    if name == "SiglipTextModel":
        return dict(text_embeds=unit(model(**text).pooler_output))
    if name == "SiglipVisionModel":
        out = model(**image)
        return dict(image_pooled=out.pooler_output if config["vision_use_head"] else out.last_hidden_state.mean(1))
    if name == "CLIPVisionModel":
        return dict(image_pooled=model(**image).pooler_output)
    if name == "CLIPTextModel":
        return dict(text_pooled=model(**text).pooler_output)
    if name.startswith("ConvNext"):
        return dict(image_pooled=model(**image).pooler_output)
    if name == "ResNetModel":
        return dict(image_pooled=model(**image).last_hidden_state.mean((2, 3)))
    if "image_size" in config:
        out = model(**image).last_hidden_state
        first = 1 + config.get("num_register_tokens", 0)
        return dict(image_pooled=out[:, first:].mean(1) if "image" in job["mean"] else out[:, 0])
    base = getattr(model, "base_model", model)
    out = base(**text)
    if job["pooler"]:
        return dict(text_pooled=out.pooler_output)
    out = out.last_hidden_state
    mask = b["attention_mask"][..., None].float()
    return dict(text_pooled=(out * mask).sum(1) / mask.sum(1) if "text" in job["mean"] else out[:, 0])


def timm_(folder, b, job):
    import timm

    model = timm.create_model("local-dir:" + folder, pretrained=True).eval()
    return dict(image_pooled=model.forward_head(model.forward_features(b["pixel_values"]), pre_logits=True))


def open_clip_(folder, b, job):
    import open_clip

    model, _ = open_clip.create_model_from_pretrained("local-dir:" + folder)
    model.eval()
    ids = open_clip.get_tokenizer("local-dir:" + folder)([job["text"]])[0].tolist()
    if ids[: len(job["ids"])] != job["ids"]:
        raise ValueError(f"{job['text']!r} becomes {ids}, want {job['ids']}")
    return dict(image_embeds=model.encode_image(b["pixel_values"], normalize=True), text_embeds=model.encode_text(b["input_ids"], normalize=True))


def albef(folder, b, job):
    """ALBEF's parts are timm's vision transformer and transformers' BERT with further layers."""
    import timm
    import transformers

    state, config = load_file(folder + "/model.safetensors"), read(folder + "/config_bert.json")
    vision = read(folder + "/config.json")["vision_config"]
    inner = state["visual_encoder.blocks.0.mlp.fc1.weight"].shape[0] / vision["hidden_size"]
    visual = timm.create_model("vit_base_patch16_224", img_size=vision["image_size"], patch_size=vision["patch_size"], embed_dim=vision["hidden_size"],
                               depth=vision["num_hidden_layers"], num_heads=vision["num_attention_heads"], mlp_ratio=inner, num_classes=0)
    visual.load_state_dict({k.removeprefix("visual_encoder."): v for k, v in state.items() if k.startswith("visual_encoder.")})
    config["num_hidden_layers"] = config["fusion_layer"]
    bert = transformers.BertModel(transformers.BertConfig(**{k: v for k, v in config.items() if k not in ("architectures", "model_type")}), add_pooling_layer=False)
    lacks = bert.load_state_dict({k.removeprefix("text_encoder.bert."): v for k, v in state.items() if k.startswith("text_encoder.bert.")}, strict=False).missing_keys
    if [k for k in lacks if "ids" not in k]:
        raise ValueError(f"missing {lacks}")
    image = visual.eval().forward_features(b["pixel_values"])[:, 0]
    text = bert.eval()(input_ids=b["input_ids"], attention_mask=b["attention_mask"]).last_hidden_state[:, 0]
    head = lambda x, name: unit(x @ state[name + "_proj.weight"].T + state[name + "_proj.bias"])
    return dict(image_pooled=image, text_pooled=text, image_embeds=head(image, "vision"), text_embeds=head(text, "text"))


def onnx_(folder, b, job):
    import onnx
    import onnxruntime

    out = {}
    for name in ("image", "text", "dual", "model"):
        path = f"{folder}/{name}.onnx"
        if not os.path.exists(path):
            continue
        onnx.checker.check_model(path, full_check=True)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for rows in (len(b["logits"]), 1):
            feed = {i.name: b[i.name][:rows].numpy() for i in session.get_inputs()}
            for o, value in zip(session.get_outputs(), session.run(None, feed)):
                value = torch.from_numpy(value)
                if rows == 1:
                    want = out[f"{name}/{o.name}"]
                    difference = (value - (want[:1, :1] if o.name == "logits" else want[:1])).abs().max().item()
                    if difference > 1e-4:
                        raise ValueError(f"{o.name} of one row differs by {difference}")
                else:
                    out[f"{name}/{o.name}"] = value
    return out


def run(job):
    b = load_file(job["inputs"])
    form = {"hf": hf, "timm": timm_, "open_clip": open_clip_, "albef": albef, "onnx": onnx_}[job["form"]]
    with torch.no_grad():
        got = form(job["folder"], b, job)
    return {name: (value - b[name.split("/")[-1]]).abs().max().item() for name, value in got.items()}


def main():
    for job in read(sys.argv[1]):
        try:
            result = {"name": job["name"], "differences": run(job)}
        except ImportError as e:
            result = {"name": job["name"], "skipped": str(e)}
        except Exception as e:
            traceback.print_exc()
            result = {"name": job["name"], "error": f"{type(e).__name__}: {e}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
