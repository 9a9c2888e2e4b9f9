"""Ids of texts by single steps of a tokenizer.json, as the package tokenizers computes them.

  python tools/goldens/tokenizer_steps.py > data/tokenizer/testdata/steps.json
"""
import json

from tokenizers import Tokenizer


def level(words):
    return {"type": "WordLevel", "unk_token": "?", "vocab": {w: i for i, w in enumerate(words)}}


def added(id, content, **flags):
    return {**dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False), **flags}


def file(model, norm=None, pre=None, tokens=()):
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "?"}
    return {"version": "1.0", "padding": padding, "added_tokens": list(tokens), "normalizer": norm, "pre_tokenizer": pre, "post_processor": None, "decoder": None, "model": model}


SPLIT = {"type": "WhitespaceSplit"}
META = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}
BPE = {"type": "BPE", "unk_token": "?", "continuing_subword_prefix": "@", "end_of_word_suffix": "$",
       "vocab": {"?": 0, "a": 1, "@b": 2, "@c": 3, "@c$": 4, "a$": 5, "ab": 6, "abc$": 7, "b": 8}, "merges": ["a @b", "ab @c$"]}
UNIGRAM = {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -1.0], ["b", -2.0], ["ab", -2.5], ["ab", -4.0]], "byte_fallback": False}
MARKED = level(["?", "\u2581a", "a", "\u2581b", "b", "c"])
CASES = [
    ("white space behind a token", file(level(["?", "a"]), None, SPLIT, [added(2, "</s>", rstrip=True), added(3, "\n")]), ["a </s> \n a", "</s>\n\n", "</s> a"]),
    ("two tokens of the same white space", file(level(["?", "a"]), None, SPLIT, [added(2, "  ", lstrip=True, rstrip=True)]), ["a    a", "a \t   \n a"]),
    ("prefix and suffix of BPE", file(BPE), ["abc", "abcc", "a", "ab", "bc", "xa"]),
    ("a piece that is there twice", file(UNIGRAM), ["ab", "aba"]),
    ("Nmt", file(level(["?", "ab", "a", "b"]), {"type": "Nmt"}, SPLIT), ["a\x0bb", "a\u200bb", "\ufeffa\tb\x7f"]),
    ("ByteLevel", file(level(["?", "\u0120a", "\u00c3\u00a9"]), {"type": "ByteLevel"}), [" a", "\u00e9", "a"]),
    ("CharDelimiterSplit", file(level(["?", "a", "b"]), None, {"type": "CharDelimiterSplit", "delimiter": "-"}), ["a-b", "--a", "a-b-"]),
    ("FixedLength", file(level(["?", "a\u00e9", "bc", "d"]), None, {"type": "FixedLength", "length": 2}), ["a\u00e9bcd", "bc", ""]),
    ("first behind a deletion", file(MARKED, {"type": "Strip", "strip_left": True, "strip_right": False}, META), ["a b", " a b", "a"]),
    ("first behind a cut", file(MARKED, None, {"type": "Sequence", "pretokenizers": [SPLIT, META]}), ["a b", " a b"]),
    ("first behind a token", file(MARKED, {"type": "Lowercase"}, META, [added(6, "<x>")]), ["<x>a", "A<x>B"]),
]
out = []
for name, f, texts in CASES:
    t = Tokenizer.from_str(json.dumps(f))
    out.append(dict(name=name, file=f, texts=texts, ids=[t.encode(s).ids for s in texts]))
print("[" + ",\n".join(json.dumps(c) for c in out) + "]")
