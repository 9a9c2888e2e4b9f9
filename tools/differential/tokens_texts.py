"""Hostile texts for tokenizers."""
import unicodedata

WORDS = """a dog runs in the grass|two cats|it's|we're|don't|IT'S|WE'LL|DON'T I'D|na\u00efve caf\u00e9|\u72d7\u548c\u732b|\uff28\uff45llo|\u0130stanbul|stra\u00dfe|3,000|$5.99|10:30|1234567|\u0664\u0662|x\u00b2\u00bd|
\U0001f600|\U0001f468\u200d\U0001f469\u200d\U0001f467|\U0001f44d\U0001f3fd|\u2764\ufe0f|\U0001f1e9\U0001f1ea|[MASK]|<mask>|</s>|<s>|<pad>|<unk>|<0x0A>|<|endoftext|>|<|im_start|>|[CLS]|[SEP]|un##aff|\u2581x|_\u2581\u2581_|&amp;|C++|e\u0301\u0302|\ufb01n|\u2026|
\u00a0|\u3000|\u2028|\u0085|\t|\n|\n\n|\r\n|\r|          |\t\t  \n |\u200b|\u200c|\u2060|\ufeff|\u00ad|\u0000|\u0007|\u001b[0m|\u007f|\ufffd|\ue000|\\ud83d|\\x00|x|
https://example.org/a_b?c=%20d&e=f#g|me@example.org|@user|#tag|www.x.de/~y|--|___|...|?!|``quoted''|\u201cq\u201d|\u2018q\u2019|l\u2019eau|
\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645|\u05e9\u05dc\u05d5\u05dd|\u0928\u092e\u0938\u094d\u0924\u0947|\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35|\ud55c\uad6d\uc5b4|\u1112\u1161\u11ab|\u3053\u3093\u306b\u3061\u306f\u30ab\u30fb|\uff76\uff9e|\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2|\u01c5|\u1e9e|\u212b|
def f(x):\n    return x|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|ab"""
WORDS = [w for w in WORDS.replace("|\n", "|").split("|")]
RANGES = [(32, 127), (32, 127), (160, 591), (0x300, 0x36f), (0x370, 0x5ff), (0x900, 0x97f), (0xe00, 0xe7f), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2e80, 0x9fff), (0xac00, 0xd7a3), (0xfb00, 0xffef), (0x1f300, 0x1f64f), (0, 0x1f), (0, 0x10ffff)]


def settled(c):
    """Whether the tables of all programs have a character alike: those of Unicode differ by version in newer ones (docs/data.md)."""
    return 0x1f300 <= c <= 0x1f64f or not 0xd800 <= c <= 0xdfff and unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"


def text(r):
    out = []
    for _ in range(r.randint(0, 12)):
        if r.random() < 0.6:
            out.append(r.choice(WORDS))
        else:
            a, b = r.choice(RANGES)
            out.append("".join(chr(c) for c in (r.randint(a, b) for _ in range(r.randint(1, 6))) if settled(c)))
    return r.choice(["", " ", " ", "  "]).join(out)
