"""What a TOML file of trainer bench says, as far as the peer knows it."""
import math
import pathlib
import sys
import tomllib

# The keys that matter here, with the defaults of package config.
DEFAULTS = {
    "data": {"tokens": 30, "vocab_size": 30522},
    "model": {
        "system": "albef",
        "image": {"size": 256, "patch": 16, "depth": 12, "width": 768, "heads": 12, "mlp": 0},
        "text": {"layers": 6, "fusion_layers": 6, "width": 768, "heads": 12, "mlp": 0, "positions": 512, "dropout": 0.1},
        "head": {"dim": 256},
        "heads": {"in_image": 768, "in_text": 768, "hidden": 8000, "dropout": 0.3, "activation": "gelu"},
    },
    "momentum": {"enabled": True, "m": 0.995},
    "queue": {"size": 65536},
    "objective": {
        "distill": {"alpha": 0.4},
        "itc": {"weight": 1.0, "in_batch_weight": 0.0, "temperature": 0.07, "temperature_min": 0.001, "temperature_max": 0.5},
        "itm": {"weight": 1.0},
        "mlm": {"weight": 1.0, "prob": 0.15},
    },
    "optimizer": {"lr": 1e-4, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "decay": 0.02},
    "train": {"batch_size": 64},
}

# Keys that must have these values, if they are set.
ONLY = {
    "model.image.style": "vit", "model.text.style": "bert", "objective.itc.score": "cosine",
    "momentum.dropout": True, "objective.itc.positives": "pair", "objective.itc.learn_temperature": True,
    "optimizer.clip_norm": 0, "train.accumulate_steps": 1,
}

# Keys whose values do not matter: the queue is full and ramps are over, on both sides.
IGNORED = {"queue.start_steps", "objective.distill.ramp_steps"}

# Tables of which every key must be known, or be 0: another one would be another step.
KNOWN = ("model", "momentum", "queue", "objective", "optimizer")


def overlay(base, top):
    """base with the values of top for the keys that base has."""
    return {k: overlay(v, top.get(k, {})) if isinstance(v, dict) else top.get(k, v) for k, v in base.items()}


def assign(c, text):
    """Sets path=value, as --set of bin/trainer does."""
    path, _, value = text.partition("=")
    *tables, key = path.split(".")
    for t in tables:
        c = c.setdefault(t, {})
    try:
        c[key] = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        c[key] = value


def merged(base, top):
    """base with all of top."""
    return {**base, **{k: merged(base[k], v) if isinstance(v, dict) and isinstance(base.get(k), dict) else v for k, v in top.items()}}


def read(path):
    """The content of a file and of the one that it begins with (base)."""
    with open(path, "rb") as f:
        c = tomllib.load(f)
    base = c.pop("base", None)
    return merged(read(pathlib.Path(path).parent / base), c) if base else c


def unknown(c, defaults, at):
    """The keys of a table that this program has no default for, and their values, but for those that are 0."""
    for k, v in c.items():
        key = f"{at}.{k}"
        if key in ONLY or key in IGNORED:
            continue
        if isinstance(v, dict):
            yield from unknown(v, defaults.get(k, {}), key)
        elif k not in defaults and v:
            yield key, v


def load(path, overrides=()):
    """The settings of a file; ends the program with a message if this peer does something else."""
    c = read(path)
    for text in overrides:
        assign(c, text)
    for key, only in ONLY.items():
        value = c
        for part in key.split("."):
            value = value.get(part, {})
        if value not in ({}, only):
            sys.exit(f"{path}: {key} = {value!r} is not what this program does, which is {only!r}")
    for table in KNOWN:
        for key, value in unknown(c.get(table, {}), DEFAULTS.get(table, {}), table):
            sys.exit(f"{path}: {key} = {value!r} is a step that this program does not make")
    c = overlay(DEFAULTS, c)
    if family(c) == "albef":
        for k in ("itc", "itm", "mlm"):
            if c["objective"][k]["weight"] == 0:
                sys.exit(f"{path}: objective.{k}.weight is 0, but this program computes all three losses or in-batch contrast alone")
    return c


def family(c):
    """Which of the peer's models the settings mean: albef, clip or heads."""
    if c["model"]["system"] != "albef":
        return c["model"]["system"]
    o = c["objective"]
    alone = not c["momentum"]["enabled"] and o["itm"]["weight"] == o["mlm"]["weight"] == 0 and o["itc"]["in_batch_weight"] > 0
    return "clip" if alone else "albef"


def mask_rows(b, l, prob):
    """M of a graph of fixed shapes, objectives.MaskCapacity."""
    n = b * (l - 1)
    return max(min(8 * math.ceil((n * prob + 6 * math.sqrt(n * prob * (1 - prob))) / 8), n), 1)
