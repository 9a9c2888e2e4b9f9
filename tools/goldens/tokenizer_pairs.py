"""Pairs of texts in one by Hugging Face tokenizers, for data/tokenizer/pair_test.go.

Run from the repository root:  python tools/goldens/tokenizer_pairs.py
Written with transformers 4 and 5. Writes data/tokenizer/testdata/pairs.json.
"""
import json

from transformers import PreTrainedTokenizerFast

PAIRS = [
    ("a man is eating food", "a man eats a piece of bread"),
    ("two dogs", "a dog and another dog run over the green grass of the park"),
    ("a woman is playing the guitar on the stage of a small theatre", "music"),
    ("", "only the second"),
]
SPECIALS = {"bert": ("[CLS]", "[SEP]", "[PAD]"), "roberta": ("<s>", "</s>", "<pad>")}


def main():
    cases = []
    for kind, (cls, sep, pad) in SPECIALS.items():
        tok = PreTrainedTokenizerFast(tokenizer_file=f"data/tokenizer/testdata/kinds/{kind}/tokenizer.json", cls_token=cls, sep_token=sep, pad_token=pad)
        for a, b in PAIRS:
            for most in (9, 16, 64):
                x = tok(a, b, truncation="longest_first", max_length=most)
                first = sum(1 for s in x.encodings[0].sequence_ids if s == 0)
                cases.append({"kind": kind, "a": a, "b": b, "most": most, "ids": x["input_ids"], "types": x.get("token_type_ids") or x.encodings[0].type_ids, "first": first})
    with open("data/tokenizer/testdata/pairs.json", "w") as f:
        json.dump(cases, f, separators=(",", ":"))
        f.write("\n")
    print(len(cases), cases[0], cases[-1])


if __name__ == "__main__":
    main()
