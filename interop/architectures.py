"""Writes the tensors of timm's vision transformers without their numbers, and what no tensor shows of each.

    venv/bin/python interop/architectures.py FOLDER

go test ./interop -run TestArchitectures calls it. FOLDER/NAME has config.json and model.safetensors, whose numbers are a hole in the file, and
architectures.json the settings that the package's own model has. A package that is not there is told in a line, with the exit status 77.
"""
import json
import os
import struct
import sys

try:
    import timm
    import torch
except ImportError as e:
    print(e)
    sys.exit(77)

from timm.models import beit, eva, vision_transformer

folder = sys.argv[1].rstrip("/") + "/"
PLAIN = {vision_transformer.VisionTransformer: vision_transformer.Block, eva.Eva: eva.EvaBlock, beit.Beit: beit.Block}
ACTS = dict(GELU="gelu", GELUTanh="gelu_tanh", QuickGELU="quick_gelu", SiLU="silu")
POOLS = dict(token="class", avg="mean", map="attention")


def facts(m):
    block, rope = m.blocks[0], getattr(m, "rope", None)
    if type(block) is not PLAIN[type(m)]:
        return {"refused": True}
    out = {"heads": block.attn.num_heads, "eps": block.norm1.eps, "activation": ACTS.get(type(block.mlp.act).__name__, "other"), "pool": POOLS.get(m.global_pool, "other"), "rotary": ""}
    kinds = dict(RotaryEmbeddingCat="cells", RotaryEmbeddingDinoV3="centred")
    if rope is not None:
        if type(rope).__name__ not in kinds:
            return {"refused": True}
        out["rotary"] = kinds[type(rope).__name__]
        out.update(theta=float(rope.temperature), offset=float(rope.grid_offset), columns_first=rope.grid_indexing == "xy", adjacent=not block.attn.rotate_half)
        out["reference"] = (getattr(rope, "ref_feat_shape", None) or [0])[0]
    if getattr(m, "attn_pool", None) is not None:
        out["pool_heads"] = m.attn_pool.num_heads
    out["refused"] = "other" in out.values() or getattr(m, "dist_token", None) is not None
    return out


all_of = {}
for name in timm.list_models():
    if not name.startswith(("vit_", "deit", "eva", "beit", "flexivit")) or name.startswith("vitamin"):
        continue
    with torch.device("meta"):
        m = timm.create_model(name)
    if type(m) not in PLAIN:
        continue
    all_of[name] = facts(m)
    os.makedirs(folder + name)
    header, at = {}, 0
    for k, v in m.state_dict().items():
        header[k] = dict(dtype="F32", shape=list(v.shape), data_offsets=[at, at + 4 * v.numel()])
        at += 4 * v.numel()
    text = json.dumps(header).encode()
    with open(folder + name + "/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    cfg = m.pretrained_cfg
    with open(folder + name + "/config.json", "w") as f:
        json.dump(dict(architecture=name, pretrained_cfg=dict(input_size=cfg["input_size"])), f)
with open(folder + "architectures.json", "w") as f:
    json.dump(all_of, f)
