"""Image towers of ours as modules of timm, for programs that take any encoder."""
import re

import bert
from timm.models.vision_transformer import VisionTransformer


def vit(ours):
    """The vision transformer of the settings, whose class token is forward_features(x)[:, 0]."""
    return VisionTransformer(**bert.pixels(ours), num_classes=0)


def table(ours, module, prefix=""):
    """Names of its parameters below a prefix, as Names wants them."""
    shapes = {k: p.shape for k, p in module.named_parameters()}
    names = {}
    for name in ours.part("param/"):
        for pattern, to in bert.LAYOUT[:6]:
            if match := re.fullmatch(pattern, name):
                theirs = match.expand(to).removeprefix("visual_encoder.")
                names[prefix + theirs] = name, lambda x, shape=shapes[theirs]: x.reshape(shape)
    return names
