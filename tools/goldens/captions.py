"""Values for eval/captions_golden_test.go: BLEU and CIDEr-D of made-up captions, and the words of difficult ones.

Run with a Python that has pycocoevalcap, and with Java, from the root of the repository:

    python tools/goldens/captions.py

It writes eval/testdata/captions.json. Everything comes from pycocoevalcap, the official evaluation of COCO's captions for Python 3.
Last run with pycocoevalcap 1.2 (Stanford's tokenizer 3.4.1) and numpy 2.4.
"""

import contextlib
import io
import json
import pathlib
import random

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

gen = random.Random(3)
WORDS = "a a a the two dogs dog runs on in grass red big ball with man , his 's and near water".split()

DIFFICULT = """A man's t-shirt, black/white (very nice) isn't "good"...
cannot gonna wanna gimme 'tis 'twas don't DON'T dont I'm you're they've she'll he'd the dogs' toys
A colour in the theatre of the U.S. army, Mr. Smith, St. Bernard at 5 p.m. etc.
3.5 1,000 10:30 5-year-old 3/4 1/2 $5 50% café a&b A & B &amp; AT&T 5,300-pound
“quoted” ‘single’ – — … man—woman a--b a -- b a - b
man,woman man, woman. man.Woman man;woman man:woman what?! ??? wow! wow!!
1980's 80s 1st 6'2" 7" o'clock ma'am 'em
and/or w/ w/o jean-claude twenty-two lets let's its it's whats what's can’t it’s
foo'bar i'd've should've it's' shan't o'neil l'oreal men's women's mens'
[unk] <unk> (a) a(b)c {d} * ** _ ~ ^ | = a+b #tag @home do n't walk
black,white and gray.a dog.The cat
a   dog \t runs .
...
A TWO-STORY HOUSE WITH A B&W CAT""".split("\n")


def sentence(longest):
    return " ".join(gen.choice(WORDS) for _ in range(gen.randint(1, longest)))


def corpus(pictures, longest, empty=False):
    hypotheses, references = {}, {}
    for i in range(pictures):
        references[i] = [sentence(longest) for _ in range(gen.randint(1, 5))]
        # Half of the captions are a reference with some words changed.
        words = gen.choice(references[i]).split() if gen.random() < 0.5 else sentence(longest).split()
        hypotheses[i] = [" ".join(w if gen.random() < 0.8 else gen.choice(WORDS) for w in words)]
    if empty:
        hypotheses[0] = [""]
    with contextlib.redirect_stdout(io.StringIO()):
        bleu, _ = Bleu(4).compute_score(references, hypotheses)
        cider, each = Cider().compute_score(references, hypotheses)
    return {
        "captions": [hypotheses[i][0] for i in range(pictures)],
        "references": [references[i] for i in range(pictures)],
        "bleu": [float(b) for b in bleu],
        "cider": float(cider),
        "each": [float(e) for e in each],
    }


words = PTBTokenizer().tokenize({i: [{"caption": c}] for i, c in enumerate(DIFFICULT)})
out = {
    "corpora": [corpus(60, 12), corpus(7, 5, empty=True), corpus(1, 8), corpus(30, 40)],
    "words": [{"caption": c, "words": words[i][0].split()} for i, c in enumerate(DIFFICULT)],
}
pathlib.Path("eval/testdata/captions.json").write_text(json.dumps(out, ensure_ascii=False, separators=(",", ":")) + "\n")
