"""What pycocoevalcap makes of captions: their words, BLEU and CIDEr.

usage: captions.py INPUT OUTPUT

INPUT is a list of corpora {"captions": [...], "references": [[...], ...], "lines": n}. OUTPUT has for each the words of every caption and
reference, BLEU-1 to 4 and CIDEr of the whole and of every caption, or "error". Where a corpus has "lines", that many ends of lines stand
inside its captions, so that the official program has no words of each: it gets as many empty captions more, and the words of all are one list.
"""
import json
import sys

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer


def tokenize(groups, lines):
    captions = {i: [{"caption": c} for c in g] for i, g in enumerate(groups)}
    if lines:
        captions[len(groups)] = [{"caption": ""}] * lines
    return list(PTBTokenizer().tokenize(captions).values())


def score(corpus):
    lines = corpus.get("lines", 0)
    own, references = tokenize([[c] for c in corpus["captions"]], lines), tokenize(corpus["references"], lines)
    words = [c.split() for g in own for c in g]
    reference_words = [[c.split() for c in g] for g in references]
    if lines:
        return {"all": [w for c in words for w in c], "references_all": [w for g in reference_words for c in g for w in c]}
    out = {"words": words, "references": reference_words}
    hypotheses, truth = dict(enumerate(own)), dict(enumerate(references))
    try:
        bleu, bleus = Bleu(4).compute_score(truth, hypotheses, verbose=0)
        cider, ciders = Cider().compute_score(truth, hypotheses)
    except ValueError as e:
        return out | {"error": repr(e)}
    return out | {"bleu": bleu, "bleu_each": list(zip(*bleus)), "cider": float(cider), "cider_each": [float(c) for c in ciders]}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        corpora = json.load(f)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump([score(c) for c in corpora], f)


main()
