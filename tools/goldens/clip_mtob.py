"""Writes weights/testdata/clip_mtob and clip_mtob_ref: tiny models with random weights by the published modules of
clip-mtob (minogame/clip-mtob, Multi(2,16) and its reference with one class token), and what these compute.

    venv/bin/python tools/goldens/clip_mtob.py DIR       # from the root of the repository; DIR: a working tree of clip-mtob

Last run with torch 2.15 and commit 15fa1ec. The files are as those of weights.py: the state dict as torch.save writes it, and
expected.safetensors with inputs and features.
"""
import importlib
import os
import shutil
import sys

import torch
from safetensors.torch import save_file

ROOT = "weights/testdata/"
WIDTH, LAYERS, HEADS, CHANNELS = 8, 2, 2, 2
VOCAB, WORDS, SIZE, PATCH = 24, 6, 12, 4

sys.path.insert(0, sys.argv[1])
gen = torch.Generator().manual_seed(23)
pixels = torch.randn(2, 3, SIZE, SIZE, generator=gen)
lengths = torch.tensor([WORDS, WORDS - 2], dtype=torch.int32)
tokens = torch.randint(5, VOCAB, (2, WORDS), generator=gen)
tokens[:, 0] = 2
for row, n in enumerate(lengths):
    tokens[row, n - 1], tokens[row, n:] = 3, 0
mask = (torch.arange(WORDS)[None] < lengths[:, None]).long()

for name, module, classes, channels in (("clip_mtob", "modeling_clip_helper_mtob", 16, CHANNELS), ("clip_mtob_ref", "modeling_clip_helper_ref", 1, CHANNELS * 16)):
    module = importlib.import_module(module)
    sizes = dict(image_resolution=SIZE, vision_layers=LAYERS, vision_width=64, vision_patch_size=PATCH)
    model = module.CLIP(embed_dim=0, output_dim=channels, n_class_tokens=classes, context_length=WORDS, vocab_size=VOCAB, transformer_width=WIDTH, transformer_heads=HEADS, transformer_layers=LAYERS, **sizes)
    model.visual = module.VisionTransformer(SIZE, PATCH, WIDTH, LAYERS, HEADS, channels, classes)  # 64 channels a head there
    with torch.no_grad():
        for k, p in sorted(model.named_parameters()):
            x = torch.randn(p.shape, generator=gen)
            p.copy_(0.2 * x + (1 if ("norm" in k or ".ln_" in k or k.startswith("ln_")) and k.endswith("weight") else 0))
    model.eval()
    shutil.rmtree(ROOT + name, ignore_errors=True)
    os.makedirs(ROOT + name)
    torch.save(model.state_dict(), ROOT + name + "/vit.pt")
    unit = lambda x: x / x.norm(dim=-1, keepdim=True)
    with torch.no_grad():
        image, text = unit(model.encode_image(pixels)), unit(model.encode_text(tokens, mask))
        scores = model(pixels, (tokens, mask))[0]
    save_file({"pixel_values": pixels, "input_ids": tokens.int(), "lengths": lengths, "image_features": image.flatten(1).contiguous(), "text_features": text.flatten(1).contiguous(), "scores": scores.contiguous()}, f"{ROOT}{name}/expected.safetensors")
