"""Texts per second of the tokenizers of Hugging Face and of SentencePiece, on one thread, on the files and texts of BenchmarkKinds.

    venv/bin/python interop/tokenizer_speed.py           # from the root of the repository

The same here: go test ./data/tokenizer -run '^$' -bench Kinds -cpu 1.
"""
import gzip
import os
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import sentencepiece
import tokenizers

KINDS = "data/tokenizer/testdata/kinds/"
TEXTS = ["a dog runs through the grass", "my friend's brother doesn't see snow-covered hills", "three children, smiling, jump over the running water"]


def speed(encode, texts=3):
    """The median of five measurements of 0.2 s of encode, which takes that many texts."""
    rates = []
    for _ in range(5):
        n, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < 0.2:
            encode()
            n += texts
        rates.append(n / spent)
    return sorted(rates)[2]


print("tokenizers", tokenizers.__version__, "sentencepiece", sentencepiece.__version__)
for kind in ("bert", "roberta", "clip", "gemma"):
    t = tokenizers.Tokenizer.from_file(KINDS + kind + "/tokenizer.json")
    many = TEXTS * 100
    print(kind, "encode %.0f, encode_batch of 300 %.0f" % (speed(lambda: [t.encode(s) for s in TEXTS]), speed(lambda: t.encode_batch(many), len(many))))
for kind in ("siglip", "bytes"):
    t = sentencepiece.SentencePieceProcessor(model_proto=gzip.open(KINDS + kind + "/spiece.model.gz").read())
    print(kind, "encode %.0f" % speed(lambda: [t.encode(s) for s in TEXTS]))
