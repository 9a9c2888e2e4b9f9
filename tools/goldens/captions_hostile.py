"""Values for eval/captions_hostile_test.go: words, BLEU and CIDEr-D of captions that are hard to split.

Run with a Python that has pycocoevalcap, and with Java, from the root of the repository:

    python tools/goldens/captions_hostile.py

It writes eval/testdata/captions_hostile.json. Everything comes from pycocoevalcap, the official evaluation of COCO's captions for Python 3:
its PTBTokenizer (Stanford's tokenizer 3.4.1) reads the captions of a corpus in one run and its references in another.
Last run with pycocoevalcap 1.2, numpy 2.4 and OpenJDK 17.
"""

import json
import pathlib
import random

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

gen = random.Random(5)
PLAIN = "a A the The two dog dogs man runs on in grass red big ball with near It He An".split()

# One line for each kind. A bar is a space inside a piece.
HARD = """😀 👍🏽 👩‍👩‍👧 ❤️ 🇩🇪 1️⃣ dog😀dog ★ ™ ‼️ ☃dog
&amp; &AMP; &lt; &GT; &quot; &apos; it&apos;s &nbsp; &mdash; &#39; &#x27; caf&eacute; caf&eacute &odq; AT&amp;T A&M S&P-500 x&y
555-1234 (555)|123-4567 555.123.4567 +1|650|723|0293 (02)1234-5678 123-4567-8901 555-
1,000 .5 -3 10:30am 5p.m. 6'2" 5'7 1980's '80s '99 50/50 1.2.3 1e5 ٣٤ x² H₂O 1­000 #1 fig.|2 No.|3 ca.|1900
1/2 1|1/2 12-3/8 ½ 1½ ⅔ ⅛ 1⁄2 1\\/2 and/or w/ a/b/c a/b/c/d
12/25/2014 1-2-99 2014-12-25 25.12.2014 Dec.|25 Mar.
foo@bar.com <a@b.co> a@b a@ http://x.y http://example.com/a(b)_c, www.foo.co.uk/bar. foo.com dog.com's photo.JPG. my.c x.tar.gz
@dog @1 #cute #été #1dog C# c++ C++11 .NET node.js
Mr. St. Inc. Co. etc. U.S. U.S.-U.K. D.C. p.m. Ph.D. Miss. miss. Az. az. A. I. J.R.R. pty.|ltd. Co.|Ltd. bldg.|9 bldg. Cap'n C.D.s
don't don’t don`t cannot gonna gimme 'tis 'twas it’s he'll y'all o'clock O'Neil l'oreal 'em 'n' cont'd s'mores n't n't's dogs' rock'n'roll
... .. ..... .|.|. … dog...cat dog.Cat a..b
-- --- ---- – — ‑ a--b a–b t-shirt mother-in-law U.S.-based 5-year-old anti- -5 a_b __
( ) [ ] { } (a) a(b)c [unk] -LRB- -lsb- << < >
" ' ` '' "dog" 'dog' ``dog'' “dog” ‘dog’ „dog“ «dog» "5 "$5 'ab
$5 US$5 £5 5€ 50¢ ¥100 ₤ ₹5 ¤ $$ ＄5
<unk> </s> <br/> <br|/> <a|href="x|y"> <a|b='c|d'> <a <!--|dog|--> <dog > <1>
:) :-( ;) =) :D :P :'( <3 ^_^ -_- (-_-) (^-^) x.x xD :/ :))
\\ \\* *** *dog* // ^ = ++ +1 ~ % & @@ §5 • †
?! !!! ¿ 、 。 ！ Yahoo! dog!Cat ؟ ։
café ΑΣ ΟΔΟΣ-ΑΣ ΑΣ.ΒΣ İstanbul ıslak ſtreet 犬が走る 狗，猫。 собака كلب हिन्दी หมา ⅷ Ⓐ １２ 𐐔𐐯 ﬁsh ꟃ
a\u00a0b a\u200bb \u200d \ufeff soft\u00adhyphen \u00ad n\u00ado \u3000 a\u202fb a\u1680b \x00 a\x1cb \x7f \u0085 e\u0301 \ufffd"""
HARD = [[p.replace("|", " ") if len(p) > 2 else p for p in line.split(" ")] for line in HARD.split("\n")]


def caption():
    parts = []
    for _ in range(gen.randint(1, 8)):
        p = gen.choice(PLAIN) if gen.random() < 0.5 else gen.choice(gen.choice(HARD))
        parts.append(p.upper() if gen.random() < 0.08 else p)
    return "".join(p + gen.choice(["", " ", " ", " ", " ", " ", " ", ", "]) for p in parts) + gen.choice(["", "", ".", " .", "!", "\n"])


def edited(text):
    words = text.split(" ")
    for _ in range(gen.randint(0, 2)):
        words[gen.randrange(len(words))] = gen.choice(PLAIN) if gen.random() < 0.5 else gen.choice(gen.choice(HARD))
    return " ".join(words)


def corpus(captions, references):
    tokenize = PTBTokenizer().tokenize
    own = tokenize({i: [{"caption": c}] for i, c in enumerate(captions)})
    true = tokenize({i: [{"caption": c} for c in r] for i, r in enumerate(references)})
    bleu, bleus = Bleu(4).compute_score(true, own, verbose=0)
    cider, each = Cider().compute_score(true, own)
    return {
        "captions": captions,
        "references": references,
        "words": [own[i][0].split() for i in own],
        "reference_words": [[c.split() for c in true[i]] for i in true],
        "bleu": bleu,
        "bleu_each": list(zip(*bleus)),
        "cider": float(cider),
        "each": [float(e) for e in each],
    }


def made_up(pictures):
    references = [[caption() for _ in range(gen.randint(1, 3))] for _ in range(pictures)]
    return corpus([edited(gen.choice(r)) if gen.random() < 0.7 else caption() for r in references], references)


every = [p for line in HARD for p in line]
out = [
    # Each piece between words, before a capital, and at the end of a line.
    corpus([f"a {p} b {p} The {p}" for p in every], [[f"a {p} dog"] for p in every]),
    made_up(150),
    # What depends on the next line, and on the end of the file.
    corpus(["a dog :)", "vitamin C.", "The cat", "vitamin C.", "the cat", "U.S.", "A dog", "plan B.", "Then he", "it is etc.", "a dog :)"], [["a dog :)", "x"]] * 11),
    corpus(["<a b='c", "a dog", "d'> e"], [["<a b='c"], ["x.[^x= a", "b"], ["c <>] d'>"]]),
    corpus(["dog :)"], [["dog :)"]]),
    corpus([""], [["a dog"]]),
    corpus(["", "😀", "a"], [["a dog", ""], ["a", "b b b b b b b b b b"], ["a"]]),
]
pathlib.Path("eval/testdata/captions_hostile.json").write_text(json.dumps(out, ensure_ascii=True, separators=(",", ":")) + "\n")
