"""Writes the folders of weights/testdata with dual encoders of open_clip whose towers are not its vision transformer and text
transformer, with random weights, as open_clip stores them, and what it computes of some inputs.

    venv/bin/python tools/goldens/weights_openclip.py             # from the root of the repository

Beside torch it needs transformers, timm and open_clip_torch. Last run with torch 2.15, transformers 5.24, timm 1.0.31, open_clip 3.3. The
files are those of tools/goldens/weights.py.
"""
import json
import os
import shutil
import tempfile

import open_clip
import torch
import transformers as T
from safetensors.torch import save_file

ROOT = "weights/testdata/"
VOCAB, WORDS, DIM = 24, 6, 6
lengths = torch.tensor([WORDS, WORDS - 2], dtype=torch.int32)
gen = torch.Generator().manual_seed(23)


def store(name, size, model, config, pad):
    with torch.no_grad():
        for key, p in sorted(model.named_parameters()):
            scale = "norm" in key.lower() or ".bn" in key or key.endswith("downsample.1.weight")
            p.copy_(0.2 * torch.randn(p.shape, generator=gen) + (1 if scale and key.endswith("weight") else 0))
        for key, b in sorted(model.named_buffers()):
            if key.endswith(("running_mean", "running_var")):
                b.add_(0.3 * torch.rand(b.shape, generator=gen))
    model.eval()
    path = ROOT + name + "/"
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    save_file({k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}, path + "open_clip_model.safetensors")
    with open(path + "open_clip_config.json", "w") as f:
        json.dump({"model_cfg": config, "preprocess_cfg": {}}, f, indent=1)
    pixels = torch.randn(2, 3, size, size, generator=gen)
    x = torch.randint(5, VOCAB - 2, (2, WORDS), generator=gen)
    for row, n in enumerate(lengths):
        x[row, n - 1] = VOCAB - 1
        x[row, n:] = pad
    with torch.no_grad():
        expected = dict(pixel_values=pixels, input_ids=x.int(), lengths=lengths, image_features=model.encode_image(pixels, normalize=True), text_features=model.encode_text(x, normalize=True))
    save_file({k: v.contiguous().clone() for k, v in expected.items()}, path + "expected.safetensors")


config = dict(embed_dim=DIM, quick_gelu=True, vision_cfg=dict(layers=[1, 1, 1, 1], width=2, image_size=64, head_width=16),
              text_cfg=dict(context_length=WORDS, vocab_size=VOCAB, width=8, heads=2, layers=1, mlp_ratio=2))
store("open_clip_resnet", 64, open_clip.CLIP(**config), config, 0)

with tempfile.TemporaryDirectory() as folder:
    vision = dict(image_size=12, layers=1, width=8, head_width=4, patch_size=4, mlp_ratio=2)
    T.RobertaConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=16, vocab_size=VOCAB, max_position_embeddings=WORDS + 2,
                    type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5).save_pretrained(folder)
    config = dict(embed_dim=DIM, vision_cfg=vision, text_cfg=dict(hf_model_name=folder, hf_model_pretrained=False, hf_pooler_type="mean_pooler", hf_proj_type="mlp", context_length=WORDS))
    model = open_clip.CustomTextCLIP(**config)
    config["text_cfg"] = dict(config["text_cfg"], hf_model_name="roberta-tiny")
    store("open_clip_roberta", 12, model, config, 1)

config = dict(embed_dim=DIM, vision_cfg=dict(image_size=12, layers=1, width=8, head_width=4, patch_size=4, mlp_ratio=2, attentional_pool=True, attn_pooler_heads=3, attn_pooler_queries=2, output_tokens=True),
              text_cfg=dict(context_length=WORDS, vocab_size=VOCAB, width=8, heads=2, layers=2, mlp_ratio=2, embed_cls=True, output_tokens=True),
              multimodal_cfg=dict(context_length=WORDS, vocab_size=VOCAB, width=DIM, heads=2, layers=1))
store("open_clip_coca", 12, open_clip.CoCa(**config), config, 0)
