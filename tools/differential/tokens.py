"""Trains tokenizers of every kind on made texts, and writes hostile texts with their ids.

  python tokens.py FOLDER CASES SEED

FOLDER/cases.json has texts by tokenizer: FOLDER/NAME.json, its texts and their ids. Of pairs the ids are of both.
"""
import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
r = random.Random(seed)

WORDS = "a dog runs in the grass|two cats|it's|we're|don't|na\u00efve caf\u00e9|\u72d7\u548c\u732b|\uff28\uff45llo|\u0130stanbul|stra\u00dfe|3,000|$5.99|10:30|\U0001f600|\U0001f468\u200d\U0001f469\u200d\U0001f467|[MASK]|<mask>|</s>|<|endoftext|>|un##aff|\u2581x|&amp;|C++|e\u0301\u0302|\ufb01n|\u2026|\u00a0|\u3000|\t|\n|\r\n|\u200b|\ufeff|\u0000|\ufffd|\ue000|x" .split("|")
RANGES = [(32, 127), (32, 127), (160, 591), (0x300, 0x36f), (0x370, 0x5ff), (0x900, 0x97f), (0xe00, 0xe7f), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2e80, 0x9fff), (0xac00, 0xd7a3), (0xfb00, 0xffef), (0x1f300, 0x1f64f), (0, 0x10ffff)]


def settled(c):
    """Whether the tables of all programs have a character alike: those of Unicode differ by version in newer ones (docs/data.md)."""
    return 0x1f300 <= c <= 0x1f64f or not 0xd800 <= c <= 0xdfff and unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"


def text():
    out = []
    for _ in range(r.randint(0, 12)):
        if r.random() < 0.5:
            out.append(r.choice(WORDS))
        else:
            a, b = r.choice(RANGES)
            out.append("".join(chr(c) for c in (r.randint(a, b) for _ in range(r.randint(1, 6))) if settled(c)))
    return r.choice(["", " ", " ", "  "]).join(out)


TRAIN = [" ".join(r.choice(WORDS) for _ in range(8)) for _ in range(300)] + [text() for _ in range(300)]


def trained(model, trainer, names, **parts):
    t = Tokenizer(model)
    for k, v in parts.items():
        setattr(t, k, v)
    t.train_from_iterator(TRAIN, trainer(vocab_size=r.choice([300, 500, 900]), special_tokens=names, show_progress=False))
    return t


def bert(lower, accents):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t = trained(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer, names, normalizer=normalizers.BertNormalizer(lowercase=lower, strip_accents=accents), pre_tokenizer=pre_tokenizers.BertPreTokenizer())
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def roberta(prefix):
    names = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    t.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=r.choice([400, 700]), special_tokens=names, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=prefix)
    return t


def clip():
    names = ["<|startoftext|>", "<|endoftext|>"]
    pattern = Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", continuing_subword_prefix=""))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, behavior="removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=800, special_tokens=names, end_of_word_suffix="</w>", initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="<|startoftext|> $A <|endoftext|>", special_tokens=[("<|startoftext|>", 0), ("<|endoftext|>", 1)])
    return t


def unigram(fallback):
    names = ["<pad>", "</s>", "<unk>"]
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=r.choice(["always", "first", "never"]))
    t.train_from_iterator(TRAIN[:300], trainers.UnigramTrainer(vocab_size=300, special_tokens=names, unk_token="<unk>", show_progress=False))
    if fallback:
        vocab = [(p, score) for p, score in json.loads(t.to_str())["model"]["vocab"]]
        t.model = models.Unigram(vocab + [(f"<0x{i:02X}>", -20.0) for i in range(256)], unk_id=2, byte_fallback=True)
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return t


def words():
    t = trained(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
                normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]), pre_tokenizer=pre_tokenizers.Whitespace())
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


makers = [lambda: bert(True, None), lambda: bert(False, False), lambda: bert(False, True), lambda: bert(True, False), lambda: roberta(True), lambda: roberta(False), clip, lambda: unigram(False), lambda: unigram(True), words]
made = {f"{i}-{m.__name__.strip('<>')}": m() for i, m in enumerate(makers)}
for path in sys.argv[4:]:
    made["file-" + pathlib.Path(path).name] = Tokenizer.from_file(path)
cases = []
for name, t in made.items():
    t.no_truncation()
    t.no_padding()
    t.save(str(folder / (name + ".json")))
    texts = [text() for _ in range(count // len(made))]
    cases.append(dict(name=name, texts=texts, ids=[t.encode(s).ids for s in texts]))
(folder / "cases.json").write_text(json.dumps(cases))
