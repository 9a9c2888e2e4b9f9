"""Trains tokenizers of every kind on made texts, and writes hostile texts with their ids.

  python tokens.py FOLDER CASES SEED

FOLDER/cases.json has texts by tokenizer: FOLDER/NAME.json, its texts and their ids. Of pairs the ids are of both.
"""
import json
import pathlib
import random
import sys

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

import tokens_families
import tokens_random
from tokens_texts import WORDS, text

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
r = random.Random(seed)

RANDOM = 120  # tokenizers of steps drawn at random
TRAIN = [" ".join(r.choice(WORDS) for _ in range(8)) for _ in range(300)] + [text(r) for _ in range(300)]


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
    t.train_from_iterator(TRAIN[:300], trainers.UnigramTrainer(vocab_size=700, special_tokens=names, unk_token="<unk>", show_progress=False))
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
for i, f in enumerate(tokens_families.FAMILIES):
    made[f"{i}-{f.__name__}"] = f(r, TRAIN)
for i in range(RANDOM):
    try:
        made[f"random-{i}"] = tokens_random.made(r, TRAIN)
    except BaseException as e:  # not every step can be trained behind every other
        if isinstance(e, KeyboardInterrupt):
            raise
for path in sys.argv[4:]:
    made["file-" + pathlib.Path(path).name] = Tokenizer.from_file(path)


def encoded(t, s):
    """The ids of a text, None where the package itself fails on it."""
    try:
        return t.encode(s).ids
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return None


cases = []
for name, t in made.items():
    t.no_truncation()
    t.no_padding()
    t.save(str(folder / (name + ".json")))
    texts = [text(r) for _ in range(count // len(made))]
    ids = [encoded(t, s) for s in texts]
    texts, ids = [s for s, x in zip(texts, ids) if x is not None], [x for x in ids if x is not None]
    case = dict(name=name, texts=texts, ids=ids)
    around = t.num_special_tokens_to_add(False)
    case["most"] = around + r.randint(0, 9)
    t.enable_truncation(case["most"])
    case["cut"] = [encoded(t, s) or [] for s in texts]
    cases.append(case)
for i, model in enumerate(tokens_families.sentences(r, TRAIN)):
    # a .model without a tokenizer.json beside it, whose texts end with </s>, as T5 reads it
    where = folder / f"sentences-{i}"
    where.mkdir()
    (where / "spiece.model").write_bytes(model)
    (where / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
    p = sentencepiece.SentencePieceProcessor(model_proto=model)
    texts = [text(r).replace("\0", "") for _ in range(count // len(made))]
    ids = [p.encode(s) + [p.eos_id()] for s in texts]
    most = r.randint(1, 9)
    cases.append(dict(name=f"sentences-{i}/spiece.model", texts=texts, ids=ids, most=most, cut=[x[:most - 1] + x[-1:] for x in ids]))
(folder / "cases.json").write_text(json.dumps(cases))
