"""SGRAF (Paranioar/SGRAF): SGR and SAF. Its batch norms, which are not here, change nothing: they have the statistics of
nothing, 0 and 1."""
import numpy as np
import torch

from hosts import IMAGE, Batch, both, linear, options, sizes, text
from ours import Names, Result

FOLDER, PYTHON2 = "SGRAF", True
CASES = {"SGR": ("gssf-sgraf", []), "SAF": ("gssf-sgraf", ["model.interaction.kind=saf"])}
GRADIENT = 2e-4  # the gradient of the score's bias is a sum whose terms cancel: that of the module in float32 is 1e-4 from its own in float64
NORM = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1 - 1e-5}


def similarity(case):
    table = linear("sim_tranloc_w", "interaction/local") | linear("sim_tranglo_w", "interaction/global") | linear("sim_eval_w", "interaction/score")
    for theirs, ours in (("v_global_w", "image"), ("t_global_w", "text")):
        at = f"interaction/{ours}/"
        table |= linear(theirs + ".embedding_local.0", at + "local") | linear(theirs + ".embedding_global.0", at + "global")
        table |= {theirs + ".embedding_common.0.weight": (at + "common", lambda x: x.unsqueeze(0)), theirs + ".embedding_common.0.bias": 0.0}
    table |= {f"v_global_w.embedding_{side}.1.{k}": v for side in ("local", "global") for k, v in NORM.items()}
    if case == "SAF":
        return table | linear("SAF_module.attn_sim_w", "interaction/gate") | {f"SAF_module.bn.{k}": v for k, v in NORM.items()}
    for i in range(3):
        theirs, at = f"SGR_module.{i}.", f"interaction/graph/{i:02d}/"
        table |= linear(theirs + "graph_query_w", at + "query") | linear(theirs + "sim_graph_w", at + "out")
        table |= {theirs + "graph_key_w.weight": at + "key/weight", theirs + "graph_key_w.bias": 0.0}
    return table


def run(ours, case):
    import evaluation
    import model

    dim = len(ours["param/interaction/local/bias"])
    opt = options(module_name=case, sim_dim=dim, sgr_step=3, **sizes(ours))
    m = model.SGRAF(opt)
    m.val_start()  # neither dropout nor the statistics of a batch
    modules = (m.img_enc, IMAGE), (m.txt_enc, text("cap_rnn")), (m.sim_enc, similarity(case))
    gradients, named = {}, [(Names(ours, table), module) for module, table in modules]
    for names, module in named:
        names.give(module)

    b = Batch(ours, "input/")
    loss = m.criterion(m.forward_sim(*m.forward_emb(b.paired, b.tokens, b.lengths)))
    loss.backward()
    for names, module in named:
        gradients |= names.gradients(module)

    b = Batch(ours, "eval/")
    with torch.no_grad():
        images, captions, lengths = m.forward_emb(b.images, b.tokens, b.lengths)
    captions, lengths = captions[b.back].numpy(), [lengths[i] for i in b.back.tolist()]
    sims = evaluation.shard_attn_scores(m, images.numpy(), captions, lengths, opt)
    evaluate = both(evaluation, lambda sims: (images, captions, lengths, sims))
    return Result(torch.from_numpy(np.asarray(sims)), {"loss": loss.item()}, gradients, evaluate)
