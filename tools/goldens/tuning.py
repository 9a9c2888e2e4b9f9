"""Golden towers that are tuned for model/towers_golden_test.go.

The towers of towers.py with what model.tuning adds to them, written as hooks of their modules:

- adapters behind the attention and the feed-forward part (Houlsby et al. 2019): y + up(act(down(y M)));
- scales and shifts of what linear layers and norms give (Lian et al. 2022), a scale alone without a bias;
- adapters of low rank that read x M (lora.py has them without a metric M);
- prompts (Jia et al. 2022): tokens that are put between class tokens or registers and patches, or in front of
  words, before the first block alone or, deep, before every block in the place of those before.

Run from the root of the repository with the Python of towers.py; the last run was with torch 2.15 and
transformers 5.23:

    python tools/goldens/tuning.py

Writes model/testdata/tower_tuning_*.safetensors.
"""

import torch
import torch.nn.functional as F
import towers

RANK, ALPHA, WIDTH, PROMPTS, BLOCKS = 2, 3, 3, 2, 2
PARTS = {"attn/proj": "attn", "mlp/fc2": "mlp", "attention/output": "attention", "ffn/output": "ffn"}


class Tuned(towers.Names):
    """Names with the new parameters; what tunes is in the class attributes."""

    lora = ssf = adapter = False
    act, metric = F.gelu, ""
    prompts = ""  # shallow or deep
    at, embeddings, layers, blocks = 0, "", "", ""  # where prompts go, and the blocks with their name here

    def __init__(self, model):
        super().__init__(model)
        self.modules = dict(model.named_modules())
        self.gen = torch.Generator().manual_seed(78)
        if self.prompts:
            self.prompt(model)

    def find(self, names):
        """The module of the first of several names that is there, whatever stands before it."""
        return next(m for name in names.split() for k, m in self.modules.items() if f".{k}".endswith("." + name))

    def new(self, name, *shape, around=0.0):
        p = torch.nn.Parameter((around + 0.3 * torch.randn(shape, generator=self.gen)).double())
        self.theirs[name] = p
        self.add(name, name)
        return p

    def measured(self, name, width):
        """x -> x M for a metric M that is no identity."""
        if self.metric == "diag":
            m = self.new(name, width, around=1)
            return lambda x: x * m
        if self.metric == "dense":
            m = self.new(name, width, width)
            return lambda x: x @ m
        if self.metric == "block_diag":
            m = self.new(name, BLOCKS, width // BLOCKS, width // BLOCKS)
            return lambda x: x @ torch.block_diag(*m)
        return lambda x: x

    def scaled(self, ours, modules, sizes, bias, channels=-1):
        """Scales and shifts what the modules give, which side by side are the layer."""
        scale = self.new(ours + "/ssf_scale", sum(sizes), around=1)
        shift = self.new(ours + "/ssf_shift", sum(sizes)) if bias else torch.zeros(sum(sizes)).double()
        lo = 0
        for m, n in zip(modules, sizes):
            def hook(_, x, y, lo=lo, n=n):
                y = y.movedim(channels, -1)
                return (y * scale[lo : lo + n] + shift[lo : lo + n]).movedim(-1, channels)
            m.register_forward_hook(hook)
            lo += n

    def patches(self, ours, theirs):
        super().patches(ours, theirs)
        m = self.modules[theirs]
        if self.ssf:
            self.scaled(ours, [m], [m.out_channels], m.bias is not None, channels=1)

    def layer(self, ours, *theirs):
        super().layer(ours, *theirs)
        modules = [self.modules[t] for t in theirs]
        linear = all(isinstance(m, torch.nn.Linear) for m in modules)
        sizes = [m.out_features if linear else m.weight.shape[0] for m in modules]
        inside = ours.count("/") == 4
        if linear and inside and self.lora:
            width = modules[0].in_features
            a, b = self.new(ours + "/lora_a", RANK, width), self.new(ours + "/lora_b", sum(sizes), RANK)
            measured, lo = self.measured(ours + "/lora_metric", width), 0
            for m, n in zip(modules, sizes):
                m.register_forward_hook(lambda _, x, y, lo=lo, n=n: y + ALPHA / RANK * (measured(x[0]) @ a.T) @ b[lo : lo + n].T)
                lo += n
        if self.ssf:
            self.scaled(ours, modules, sizes, modules[0].bias is not None)
        part = "/".join(ours.split("/")[-2:])
        if self.adapter and inside and part in PARTS:
            at = "/".join(ours.split("/")[:3]) + "/" + PARTS[part] + "/adapter"
            width, act = sizes[0], type(self).act
            of = self.measured(at + "/metric", width)
            down, up = (self.new(at + "/down/weight", WIDTH, width), self.new(at + "/down/bias", WIDTH)), (self.new(at + "/up/weight", width, WIDTH), self.new(at + "/up/bias", width))
            modules[0].register_forward_hook(lambda _, x, y: y + F.linear(act(F.linear(of(y), *down)), *up))

    def prompt(self, model):
        at, layers = self.at, self.find(self.layers)
        insert = lambda x, p: torch.cat([x[:, :at], p.expand(len(x), *p.shape), x[:, at:]], 1)
        strip = lambda x: torch.cat([x[:, :at], x[:, at + PROMPTS :]], 1)
        each = [self.new(f"{self.blocks}/{i:02d}/prompts", PROMPTS, towers.D) for i in range(len(layers) if self.prompts == "deep" else 1)]
        self.find(self.embeddings).register_forward_hook(lambda _, x, y: insert(y, each[0]))
        for layer, p in zip(layers[1:], each[1:]):
            layer.register_forward_pre_hook(lambda _, args, p=p: (insert(strip(args[0]), p), *args[1:]))
        layers[-1].register_forward_hook(lambda _, x, y: (strip(y[0]), *y[1:]) if isinstance(y, tuple) else strip(y))

        def mask(_, args, kwargs):
            m = kwargs.get("attention_mask")
            if m is not None:
                kwargs["attention_mask"] = torch.cat([m.new_ones(len(m), PROMPTS), m], 1)
            return args, kwargs

        model.register_forward_pre_hook(mask, with_kwargs=True)


def golden(name, run, **options):
    """Writes the tower of run, tuned by options, under a name."""
    towers.Names = type("Named", (Tuned,), {k: staticmethod(v) if callable(v) else v for k, v in options.items()})
    towers.write = lambda _, *args, **more: write("tuning_" + name, *args, **more)
    run()


if __name__ == "__main__":
    write = towers.write
    clip = dict(embeddings="embeddings", layers="encoder.layers")
    images, texts = dict(at=1, blocks="image/blocks"), dict(at=0, blocks="text/layers")
    bert = dict(embeddings="embeddings", layers="encoder.layer", **texts)
    both = dict(lora=True, adapter=True, ssf=True)
    golden("clip_image", towers.clip_image, **both, metric="block_diag", prompts="deep", **clip, **images)
    golden("clip_text", towers.clip_text, **both, metric="dense", prompts="shallow", **clip, **texts)
    golden("roberta", towers.roberta, **both, act=F.relu, metric="diag", prompts="deep", **bert)
    golden("adapter_roberta", towers.roberta, adapter=True)
    golden("ssf_clip_image", towers.clip_image, ssf=True)
    golden("prompt_roberta", towers.roberta, prompts="shallow", **bert)
    golden("prompt_siglip_text", towers.siglip_text, prompts="deep", **clip, **texts)
    golden("prompt_siglip_image", towers.siglip_image, prompts="shallow", **clip, at=0, blocks="image/blocks")
    dino = lambda: towers.dinov2("dinov2_registers", 3, False, 6)
    golden("prompt_registers", dino, prompts="deep", embeddings="embeddings", layers="encoder.layer layers", at=4, blocks="image/blocks")
