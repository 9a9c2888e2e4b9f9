"""TCL (uta-smile/TCL): a pre-training step of the published size, as of ALBEF, with contrast within modalities and of parts."""
import albef

FOLDER, PYTHON2, FLAGS, DOUBLE = "TCL", False, albef.FLAGS, False
CASES = {"pre-training, ViT-B/16 and BERT-base": ("", ["data.views=2", "objective.tcl.intra=true", "objective.tcl.local=true"])}
run = albef.run
