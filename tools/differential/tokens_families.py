"""Tokenizers of published families, with the steps that their files have."""
import io
import os
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers as N, pre_tokenizers as P, processors, trainers

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + ENDS + r"|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + ENDS
         + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def spm(r, texts, **options):
    """A model of SentencePiece, as its file has it."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "texts.txt")
        with open(path, "w", encoding="utf-8", newline="\n") as f:
            f.write("\n".join(t.replace("\n", " ").replace("\r", " ").replace("\0", "") for t in texts))
        sentencepiece.SentencePieceTrainer.train(input=path, model_writer=out, **{**dict(minloglevel=2, hard_vocab_limit=False, vocab_size=600, character_coverage=0.98), **options})
    return out.getvalue()


def sentences(r, texts):
    """Models of SentencePiece with settings of all kinds."""
    for rule in ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"):
        for _ in range(3):
            yield spm(r, texts, vocab_size=2500, normalization_rule_name=rule, add_dummy_prefix=r.random() < 0.7, remove_extra_whitespaces=r.random() < 0.7, byte_fallback=r.random() < 0.4,
                      split_by_unicode_script=r.random() < 0.5, split_digits=r.random() < 0.5, split_by_whitespace=r.random() < 0.8, max_sentencepiece_length=r.choice([4, 16]),
                      pad_id=r.choice([-1, 3]), unk_piece=r.choice(["<unk>", "[UNK]"]))


def charsmap(rule="nmt_nfkc"):
    m = sentencepiece_model_pb2.ModelProto()
    m.ParseFromString(spm(None, ["a dog runs in the grass and the cat sleeps"] * 20, vocab_size=24, normalization_rule_name=rule))
    return m.normalizer_spec.precompiled_charsmap


def around(t, begin, end):
    names = [x for x in (begin, end) if x]
    t.post_processor = processors.TemplateProcessing(single=" ".join(x for x in (begin, "$A", end) if x), special_tokens=[(x, t.token_to_id(x)) for x in names])
    return t


def bytes_of(r, texts, pattern, names, begin=None, end=None, norm=None, steps=None, **model):
    t = Tokenizer(models.BPE(**model))
    if norm:
        t.normalizer = norm
    t.pre_tokenizer = P.Sequence(steps or [P.Split(Regex(pattern), behavior="isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=r.choice([500, 900]), special_tokens=names, initial_alphabet=P.ByteLevel.alphabet(), show_progress=False))
    return around(t, begin, end) if begin or end else t


def qwen(r, texts):
    t = bytes_of(r, texts, QWEN, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], end="<|endoftext|>", norm=N.NFC())
    t.add_tokens([AddedToken("<tool>", special=False, normalized=False), AddedToken("</s>", special=False, normalized=False)])
    return t


def llama3(r, texts):
    t = bytes_of(r, texts, LLAMA3, ["<|begin|>", "<|end|>", "<|pad|>"], ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])])
    return t


def cl100k(r, texts):
    return bytes_of(r, texts, CL100K, ["<|endoftext|>"], end="<|endoftext|>")


def o200k(r, texts):
    return bytes_of(r, texts, O200K, ["<|endoftext|>", "<|endofprompt|>"], begin="<|endofprompt|>")


def falcon(r, texts):
    return bytes_of(r, texts, "", ["<|endoftext|>", ">>TITLE<<"], steps=[P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False), P.Digits(individual_digits=False), P.Split(Regex("[0-9][0-9][0-9]"), "isolated")])


def starcoder(r, texts):
    return bytes_of(r, texts, "", ["<|endoftext|>", "<pad>"], steps=[P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)])


def deepseek(r, texts):
    return bytes_of(r, texts, "", ["<pad>", "<|end|>"], end="<|end|>", steps=[
        P.Split(Regex(r"[\r\n]"), "isolated"), P.Split(Regex(r"\s?\p{L}+"), "isolated"), P.Split(Regex(r"\s?\p{P}+"), "isolated"),
        P.Split(Regex("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), "isolated"), P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False, use_regex=False)])


def modernbert(r, texts):
    names = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", AddedToken("[MASK]", lstrip=True, special=True)]
    t = bytes_of(r, texts, "", names, "[CLS]", "[SEP]", N.NFC(), [P.ByteLevel(add_prefix_space=False, trim_offsets=True)])
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in range(2, 9)] + [AddedToken("|||IP|||", normalized=True), AddedToken("<|pad|>", special=True)])
    return t


def gemma(r, texts):
    lower = r.random() < 0.5
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    replace = N.Replace(" ", "\u2581")
    t.normalizer = N.Sequence([N.Lowercase(), replace]) if lower else replace
    t.pre_tokenizer = P.Split(" ", "merged_with_previous")
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"] + [f"<0x{i:02X}>" for i in range(256)]
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=800, special_tokens=names, show_progress=False, limit_alphabet=150))
    spaced = models_with(t, added=names[:5])
    spaced.add_tokens([AddedToken("\n" * n, normalized=False) for n in range(1, 4)] + [AddedToken("\u2581" * n, normalized=False) for n in range(2, 5)])
    return around(spaced, "<bos>", "<eos>")


def models_with(t, added):
    """A tokenizer anew in which only some of the names are added tokens, and bytes are the model's alone."""
    import json
    f = json.loads(t.to_str())
    f["added_tokens"] = [a for a in f["added_tokens"] if a["content"] in added]
    return Tokenizer.from_str(json.dumps(f))


def llama2(r, texts):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    t.train_from_iterator([w for x in texts for w in x.split(" ")], trainers.BpeTrainer(vocab_size=700, special_tokens=names, show_progress=False, limit_alphabet=120))
    return around(models_with(t, added=names[:3]), "<s>", None)


def unigram(texts, names, normalizer, pre, unk="<unk>", size=1000):
    t = Tokenizer(models.Unigram())
    t.normalizer, t.pre_tokenizer = normalizer, pre
    t.train_from_iterator([x for x in texts[:300] if x.strip()], trainers.UnigramTrainer(vocab_size=size, special_tokens=names, unk_token=unk, show_progress=False))
    return t


def xlmr(r, texts):
    t = unigram(texts, ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)],
                N.Sequence([N.Precompiled(charsmap()), N.Replace(Regex(" {2,}"), " ")]),
                r.choice([P.Sequence([P.WhitespaceSplit(), P.Metaspace()]), P.Metaspace(), P.Metaspace(prepend_scheme="always", split=True)]))
    return around(t, "<s>", "</s>")


def t5(r, texts):
    t = unigram(texts, ["<pad>", "</s>", "<unk>"] + [f"<extra_id_{i}>" for i in range(3)],
                N.Sequence([N.Precompiled(charsmap()), N.Strip(False, True), N.Replace(Regex(" {2,}"), "\u2581")]), r.choice([P.Metaspace(prepend_scheme="always"), P.Metaspace(prepend_scheme="first", split=False)]))
    return around(t, None, "</s>")


def albert(r, texts):
    t = unigram(texts, ["<pad>", "<unk>", "[CLS]", "[SEP]", AddedToken("[MASK]", lstrip=True, special=True, normalized=False)],
                N.Sequence([N.Replace("``", '"'), N.Replace("''", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), N.Precompiled(charsmap("nmt_nfkc_cf")), N.Replace(Regex(" {2,}"), " ")]),
                P.Metaspace(prepend_scheme="always"))
    return around(t, "[CLS]", "[SEP]")


def deberta(r, texts):
    steps = [P.Metaspace(prepend_scheme="always")]
    if r.random() < 0.5:
        steps.insert(0, P.Punctuation("isolated"))
    norm = [N.Lowercase()] if r.random() < 0.5 else []
    t = unigram(texts, ["[PAD]", "[CLS]", "[SEP]", "[UNK]"], N.Sequence(norm + [N.Strip(), N.Precompiled(charsmap()), N.Replace(Regex(" {2,}"), " ")]), P.Sequence(steps), "[UNK]")
    t.add_special_tokens([AddedToken("[MASK]", special=True)])
    return around(t, "[CLS]", "[SEP]")


def mpnet(r, texts):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=r.choice([7, 100])))
    t.normalizer = N.BertNormalizer(clean_text=r.random() < 0.5, handle_chinese_chars=r.random() < 0.5, strip_accents=r.choice([None, True, False]), lowercase=r.random() < 0.5)
    t.pre_tokenizer = P.BertPreTokenizer()
    t.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=600, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "[UNK]", AddedToken("<mask>", lstrip=True, special=True)], show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False, trim_offsets=True)
    return t


FAMILIES = [qwen, llama3, cl100k, o200k, falcon, starcoder, deepseek, modernbert, gemma, gemma, llama2, xlmr, xlmr, t5, t5, albert, deberta, deberta, mpnet, mpnet]
