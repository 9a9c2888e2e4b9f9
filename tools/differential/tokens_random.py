"""Tokenizers of steps drawn at random, each as its type allows."""
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers as N, pre_tokenizers as P, processors, trainers

import tokens_families as families

BEHAVIOURS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
PATTERNS = [" ", "a", "\u2581", Regex(r"\s+"), Regex(r"[aeiou]"), Regex(r"\d"), Regex(r"\p{Lu}"), Regex(r"\W"), Regex(r"(?<=x)y|[^\w\s]+"), Regex(families.QWEN), Regex(families.LLAMA3),
            Regex(r"[[:punct:]]"), Regex(r" ?\w+"), Regex(r"[^\x00-\x7f]"), Regex(r"\p{Han}"), Regex(r"\S"), Regex(r"(?:a|an)n?"), Regex(r"x*"), Regex(r"^\s|\s$"), Regex(r"\b")]


def normalizer(r):
    def one():
        return r.choice([
            N.NFC, N.NFD, N.NFKC, N.NFKD, N.Lowercase, N.StripAccents, N.Nmt, N.ByteLevel,
            lambda: N.Strip(r.random() < 0.5, r.random() < 0.5),
            lambda: N.Prepend(r.choice(["\u2581", " ", "x"])),
            lambda: N.Replace(r.choice(PATTERNS), r.choice(["", " ", "\u2581", "zz", "$1\\1"])),
            lambda: N.BertNormalizer(r.random() < 0.5, r.random() < 0.5, r.choice([None, True, False]), r.random() < 0.5),
            lambda: N.Precompiled(families.charsmap(r.choice(["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])))])()
    n = r.randint(0, 3)
    return None if n == 0 else one() if n == 1 else N.Sequence([one() for _ in range(n)])


def pre_tokenizer(r):
    def one():
        return r.choice([
            P.BertPreTokenizer, P.Whitespace, P.WhitespaceSplit,
            lambda: P.ByteLevel(add_prefix_space=r.random() < 0.5, use_regex=r.random() < 0.5),
            lambda: P.Metaspace(replacement=r.choice(["\u2581", "_"]), prepend_scheme=r.choice(["always", "first", "never"]), split=r.random() < 0.5),
            lambda: P.Split(r.choice(PATTERNS), r.choice(BEHAVIOURS), invert=r.random() < 0.5),
            lambda: P.Punctuation(r.choice(BEHAVIOURS)),
            lambda: P.Digits(individual_digits=r.random() < 0.5),
            lambda: P.CharDelimiterSplit(r.choice(["-", "_", " ", "e"])),
            lambda: P.UnicodeScripts(), lambda: P.FixedLength(r.randint(2, 6))])()
    n = r.randint(0, 3)
    return None if n == 0 else one() if n == 1 else P.Sequence([one() for _ in range(n)])


NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = [f"<0x{i:02X}>" for i in range(256)]


def model(r):
    kind = r.choice(["WordPiece", "BPE", "BPE", "Unigram", "WordLevel"])
    size = r.choice([300, 500, 900])
    if kind == "WordPiece":
        return models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=r.choice([5, 20, 100]), continuing_subword_prefix=r.choice(["##", "@@", ""])), \
            lambda m: trainers.WordPieceTrainer(vocab_size=size, special_tokens=NAMES, show_progress=False, continuing_subword_prefix=m.continuing_subword_prefix)
    if kind == "BPE":
        prefix, suffix, fall = r.choice(["", "", "@@"]), r.choice(["", "", "</w>", "$"]), r.random() < 0.3
        named = dict(continuing_subword_prefix=prefix or None, end_of_word_suffix=suffix or None)
        return models.BPE(unk_token=r.choice(["[UNK]", None]), fuse_unk=r.random() < 0.5, byte_fallback=fall, ignore_merges=r.random() < 0.3, **named), \
            lambda m: trainers.BpeTrainer(vocab_size=size, special_tokens=NAMES + BYTES * fall, show_progress=False, limit_alphabet=r.choice([60, 400]), max_token_length=r.choice([None, 5]),
                                          continuing_subword_prefix=prefix, end_of_word_suffix=suffix)
    if kind == "Unigram":
        return models.Unigram(), lambda m: trainers.UnigramTrainer(vocab_size=2500, special_tokens=NAMES, unk_token="[UNK]", show_progress=False, max_piece_length=r.choice([4, 16]))
    return models.WordLevel(unk_token="[UNK]"), lambda m: trainers.WordLevelTrainer(vocab_size=size, special_tokens=NAMES, show_progress=False, min_frequency=r.choice([0, 2]))


def post_processor(r, t):
    def name():
        x = r.choice(["[CLS]", "[SEP]", "[PAD]"])
        return x, t.token_to_id(x)
    def one():
        a, b, c = name(), name(), name()
        return r.choice([
            lambda: processors.BertProcessing(a, b), lambda: processors.RobertaProcessing(a, b, trim_offsets=r.random() < 0.5, add_prefix_space=r.random() < 0.5),
            lambda: processors.ByteLevel(trim_offsets=r.random() < 0.5),
            lambda: processors.TemplateProcessing(single=r.choice([f"{a[0]} {b[0]} $A:1 {c[0]}", f"$A {c[0]} {b[0]}:2", "$A", f"{c[0]}:3 $0"]), special_tokens=sorted({a, b, c}))])()
    n = r.randint(0, 2)
    return None if n == 0 else one() if n == 1 else processors.Sequence([one() for _ in range(n)])


def added(r):
    def flag():
        return r.random() < 0.3
    contents = ["<mask>", "dog", "[X Y]", " the", "\n", "\u00e9", "\uff28", "it's", "</s>", "a dog", "\u2581x", "CATS", "<|im_start|>", "  ", "_", "e\u0301"]
    return [AddedToken(c, single_word=flag(), lstrip=flag(), rstrip=flag(), normalized=r.random() < 0.5, special=flag()) for c in r.sample(contents, r.randint(0, 5))]


def made(r, texts):
    m, trainer = model(r)
    t = Tokenizer(m)
    n, p = normalizer(r), pre_tokenizer(r)
    if n is not None:
        t.normalizer = n
    if p is not None:
        t.pre_tokenizer = p
    t.train_from_iterator(texts, trainer(m))
    if type(t.model).__name__ == "BPE" and '"merges":[]' in t.to_str():
        raise ValueError("nothing was learned")
    if type(t.model).__name__ == "BPE" and t.model.byte_fallback:
        t = families.models_with(t, NAMES)
    post = post_processor(r, t)
    if post is not None:
        t.post_processor = post
    seen = set()
    for a in added(r):
        # of two that are one when they are normalised the package takes either, by the order of a hash table
        content = t.normalizer.normalize_str(a.content) if a.normalized and t.normalizer else a.content
        if content not in seen:
            seen.add(content)
            t.add_tokens([a])
    return t
