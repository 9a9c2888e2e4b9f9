"""Golden encodings for data/tokenizer from Hugging Face tokenizers.

Needs `pip install tokenizers` (made with 0.23.3). Writes to data/tokenizer/testdata:

  vocab.txt       a small vocabulary of our own
  cased.json      a tokenizer.json over it that keeps case and accents
  goldens.json    texts with the ids of [CLS] + pieces (no [SEP]) for: vocab.txt, cased.json
                  and, where its vocab.txt is given as argument, bert-base-uncased

  python tools/goldens/tokenizer.py [bert-base-uncased_vocab.txt]
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/tokenizer/testdata"

TEXTS = [
    "",
    "   ",
    "a brown dog running in the grass",
    "A Man's <person>-like dog/cat, (running)!",
    "the unaffable dogs are running",
    "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m R\u00c9SUM\u00c9",
    "cafe\u0301 with a combining accent",
    "tabs\tand\nnew\r\nlines\u00a0and\u2003wide spaces",
    "zero\u200bwidth\u200djoiner \ufeffbom and \u0000nul \u0007bell \ufffd end",
    "\u4e00\u53ea\u68d5\u8272\u7684\u72d7 dog \u72d7dog",
    "dogs.running!grass?(brown)[the]{a}^$`~|+=<>",
    "\u201cquoted\u201d \u2014 dash\u2026 \u00bfque? \u00a1hola!",
    "3,000 dogs cost $5.99 @ 10:30 #dog",
    "\U0001f600 dog \U0001f436\U0001f3fd running",
    "x" * 100,
    "x" * 101,
    "dog" * 34,
    "runningdog dogrunning thethethe",
    "\u0130stanbul \u1e9e stra\u00dfe \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u0421\u043e\u0431\u0430\u043a\u0430",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e38\u0e19\u0e31\u0e02 \uac1c\uac00 \u3044\u306c",
    "\u2160\u00b2\u00bd\ufb01x \u2122 \u00ae \u00aa",
    "un ## ##ning ##s dog##s",
    "soft\u00adhyphen \u2028line\u2029paragraph \u0085next",
]

WORDS = """a the dog dogs cat run running in grass man s like person brown and with end x cafe naive are aff
- / . , ! ? ( ) < > ' " $ # @ : [ ] { } 3 5 \u72d7 \u8272 Caf caf \u00e9 Man The Dog un""".split()
PIECES = "##s ##n ##ning ##run ##dog ##the ##able ##aff ##x ##xx ##e ##\u00e9 ##000 ##99 ##s' ## ##an".split()


def small_vocab():
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for w in WORDS + PIECES:
        if w not in vocab:
            vocab.append(w)
    return vocab


def build(vocab, lowercase, strip_accents):
    t = Tokenizer(WordPiece({w: i for i, w in enumerate(vocab)}, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=strip_accents, lowercase=lowercase)
    t.pre_tokenizer = BertPreTokenizer()
    return t


def encode(t, vocab):
    return [[vocab.index("[CLS]")] + t.encode(s, add_special_tokens=False).ids for s in TEXTS]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    vocab = small_vocab()
    (OUT / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    uncased, cased = build(vocab, True, None), build(vocab, False, None)
    cased.save(str(OUT / "cased.json"), pretty=True)
    goldens = {"texts": TEXTS, "small": encode(uncased, vocab), "cased": encode(cased, vocab)}
    if len(sys.argv) > 1:
        bert = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").rstrip("\n").split("\n")
        goldens["bert"] = encode(build(bert, True, None), bert)
    lines = ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in goldens.items())
    (OUT / "goldens.json").write_text("{\n" + lines + "\n}\n")


main()
