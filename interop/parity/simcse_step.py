"""SimCSE (princeton-nlp/SimCSE): a step without dropout, by the mean of the words and by [CLS] under its layer, and sentence
features."""
import re
import types

import torch

import bert
from ours import Names, Result

FOLDER, PYTHON2 = "SimCSE", False
CASES = {"avg": ("simcse", []), "cls": ("simcse", ["model.text.pool=class", "objective.simcse.head=training"])}


def run(ours, case):
    bert.prepare()
    import simcse.models as models

    c = bert.config(ours, False)
    m = models.BertForCL(c, model_args=types.SimpleNamespace(pooler_type=case, temp=0.05, do_mlm=False, hard_negative_weight=0, mlp_only_train=True)).eval()
    theirs = lambda name: re.sub(r"^text_encoder\.", "", name)
    names = Names(ours, bert.table(ours, {k: p.shape for k, p in m.named_parameters()}, theirs))
    with torch.no_grad():
        for name, p in m.named_parameters():
            p.copy_(names.of("param", name))

    def inputs(prefix):
        ids, lengths = ours[prefix + "tokens"], ours[prefix + "lengths"]
        return ids, (torch.arange(ids.shape[1]) < lengths[:, None]).long()

    with torch.no_grad():
        ids, mask = inputs("eval/")
        features = m(input_ids=ids, attention_mask=mask, sent_emb=True, return_dict=True).pooler_output
    ids, mask = (x.unsqueeze(1).repeat(1, 2, 1) for x in inputs("input/"))
    loss = m(input_ids=ids, attention_mask=mask, return_dict=True).loss
    loss.backward()
    return Result(torch.nn.functional.normalize(features), {"loss": loss.item()}, names.gradients(m))
