"""MCSE (uds-lsv/MCSE): a step without dropout over captions and images, whose features a vision transformer gives here."""
import types

import torch

import bert
import towers
from ours import Names, Result

FOLDER, PYTHON2 = "MCSE", False
CASES = {"captions": ("mcse", ["model.text.pool=class", "objective.simcse.head=training"])}
HEADS = {"text_encoder.bert.": "lang_model.bert.", "mlp.dense.": "lang_model.pooler.dense.", "vision_proj.": "visn_model.mlp.dense.", "text_proj.": "grounding.dense."}


def theirs(name):
    for old, new in HEADS.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def run(ours, case):
    bert.prepare()
    import src.model as published

    dim, width = ours["param/image_proj/weight"].shape
    c = bert.config(ours, False)
    args = types.SimpleNamespace(hidden_size=c.hidden_size, proj_dim=dim, temp=0.05, temp_vl=0.05, device="cpu")
    m = published.MCSE(published.BertForCL(c, model_args=args), published.ResNetVisnModel(width, dim), args).eval()
    m.visual_encoder = towers.vit(ours)
    names = Names(ours, bert.table(ours, {k: p.shape for k, p in m.named_parameters()}, theirs))
    with torch.no_grad():
        for name, p in m.named_parameters():
            if not name.startswith("lang_model.bert.pooler."):  # nothing reads it
                p.copy_(names.of("param", name))

    def batch(prefix, views):
        ids, lengths = ours[prefix + "tokens"], ours[prefix + "lengths"]
        mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
        return {"input_ids": ids.unsqueeze(1).repeat(1, views, 1), "attention_mask": mask.unsqueeze(1).repeat(1, views, 1), "img": m.visual_encoder.forward_features(ours[prefix + "images"])[:, 0]}

    loss, grounding = m.compute_loss(batch("input/", 2), cal_inter=True)
    total = loss + 0.05 * grounding
    total.backward()
    with torch.no_grad():
        b = batch("eval/", 1)
        texts = m.grounding(m(b)[0][:, 0])
        scores = m.visn_model(b["img"]) @ (texts / texts.norm(2, dim=-1, keepdim=True)).T
    return Result(scores, {"loss": total.item(), "loss/simcse": loss.item(), "loss/mcse": grounding.item()}, names.gradients(m))
