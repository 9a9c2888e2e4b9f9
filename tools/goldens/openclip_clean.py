"""Texts as open_clip cleans them, with ftfy, for data/clean_test.go.

  python tools/goldens/openclip_clean.py > data/testdata/openclip_clean.json

The texts are those of tokenizer_kinds.py, natural captions, and what single steps of ftfy change. Texts that ftfy takes for
ones of a wrong encoding are left out: these are not repaired here.
"""
import gzip
import json
import random

import ftfy
from open_clip.tokenizer import get_clean_fn

NATURAL = [
    "a child\u2019s bike leaning on a fence", "\u201cNo parking\u201d sign on a brick wall", "the dog\u2026 and the cat", "it\u2019s a man\u2019s world",
    "a caf\u00e9 in Paris \u2014 at night", "5\u2032 11\u2033 tall player", "\u2018vintage\u2019 poster of the \u201960s", "two \ufb01sh in a \ufb02at bowl",
    "\uff26\uff55\uff4c\uff4c width \uff21\uff22\uff23", "Rock &amp; Roll &ndash; live", "tom &amp;amp; jerry&#39;s", "a \u201equoted\u201f word, \u201asingle\u201b",
]
PARTS = ["\u201c", "\u2019", "&amp;", "&amp;lt;", "&lt;", "<b>", "&NTILDE;", "&nTILDE;", "&#x41;", "&#65", "&notit;", "&hellip;", "&;", "\n", "\r\n", "\r", "\u2028", "\u0085", "\x1b[0;31m", "\x1b[m",
         "\x07", "\ufeff", "\ufffc", "\u206a", "\ufb03", "\u01c5", "\u0133", "\uff76\uff9e", "\uff1a", "\u3000", "\uffe5", "e\u0301", "\u212b", "dog", " ", "  ", "A", "_", "!", "'", "\u02bc", "\t", "\u200d"]


def main():
    texts = json.loads(gzip.open("data/tokenizer/testdata/kinds/goldens.json.gz").read())["texts"] + NATURAL
    r = random.Random(4)
    texts += ["".join(r.choice(PARTS) for _ in range(r.randint(1, 9))) for _ in range(400)]
    texts = [s for s in texts if ftfy.fix_text(s) == ftfy.fix_text(s, fix_encoding=False)]
    out = {"texts": texts, **{rule: [get_clean_fn(rule)(s) for s in texts] for rule in ("whitespace", "lower", "canonicalize")}}
    print(json.dumps(out, indent=0))


main()
