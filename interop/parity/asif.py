"""ASIF (noranta4/ASIF): codes over anchors by its functions. The power stands in its notebook, between the two; there the codes of
images have no unit length, which changes no order of the texts of an image."""
import torch

from ours import Result

FOLDER, PYTHON2 = "ASIF", False
CASES = {"20 of 300 anchors, power 8": ("asif", [])}


def run(ours, case):
    import relreps

    kept = 20
    unit = torch.nn.functional.normalize

    def codes(side):
        anchors = unit(ours["anchors/" + side])
        rows = unit(ours["eval/" + side])
        indices, values = relreps.relative_represent(rows, anchors, kept)
        sparse = relreps.sparsify(indices, values.to(anchors.dtype) ** 8, (len(rows), len(anchors)))
        return relreps.normalize_sparse(sparse, kept).to_dense()

    return Result(codes("image") @ codes("text").T)
