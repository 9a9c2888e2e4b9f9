"""Golden encodings for data/tokenizer, of every kind that it reads, by the programs that they come from.

Needs `pip install tokenizers transformers sentencepiece open_clip_torch` (made with tokenizers 0.23.3,
transformers 5.23.0, sentencepiece 0.2.3, open_clip 3.3.0). Writes to data/tokenizer/testdata:

  kinds/NAME/...        a small tokenizer of a kind, trained on the captions below, in the files of its original
  kinds/goldens.json.gz texts, and their ids by each of the tokenizers

With the vocabularies of BERT and CLIP as arguments it adds their ids (clip: as open_clip gives them with no more of
ftfy than NFC: its repairs are not those of a tokenizer).

  python tools/goldens/tokenizer_kinds.py [bert-base-uncased_tokenizer.json clip_bpe_simple_vocab_16e6.txt.gz]
"""

import gzip
import json
import pathlib
import random
import shutil
import sys
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, CLIPTokenizer, MPNetTokenizer, RobertaTokenizer, SiglipTokenizer

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/tokenizer/testdata/kinds"

SUBJECTS = "a dog|two cats|the man|a woman|three children|an old horse|a caf\u00e9 waiter|my friend's brother|the na\u00efve girl|\u72d7\u548c\u732b|a bird".split("|")
VERBS = "runs through|is sitting on|jumps over|looks at|doesn't see|they're painting|I've lost|we'll cross|carries|plays with|sleeps under".split("|")
PLACES = "the grass|a red car|the beach at 10:30|an unaffable neighbour|the running water|snow-covered hills|\u8349\u5730|20 balloons|a na\u00efve caf\u00e9|the street, smiling!|a \u00fcber-large r\u00e9sum\u00e9|a \U0001f436".split("|")

HARD = [
    "", " ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", " \u200b ", "a", " a", "a ", "  a  b  ", "A", "\u00c9",
    "a brown dog running in the grass", "A Brown DOG Running In The Grass", "unaffable running painting", "dogs.running!grass?(brown)[the]{a}^$`~|+=<>",
    "it's we're I've I'm they'll he'd can't 's 't 're 've 'm 'll 'd ' '' ''s", "IT'S WE'RE I'VE I'M THEY'LL HE'D", "it\u2019s we\u2019re", "'''''", "''S''s' s's", "don 't", "x'sy's 'stop 'realm",
    "3,000 dogs cost $5.99 @ 10:30 #dog", "1234567890", "12 34 5678", "3.14159e-10", "\u0661\u0662\u0663 \u2160\u2161 \u00b2\u00b3 \u00bd \u2460", "1st 2nd 3rd 4x4", "2024-01-01T00:00:00Z",
    "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m R\u00c9SUM\u00c9", "cafe\u0301 nai\u0308ve A\u030angstro\u0308m", "e\u0301\u0302\u0303 a\u0323\u0307 o\u0308\u0304", "\u1ebf \u1ec7 \u1e69 \u01d6", "\u0301 lone mark", "a\u0301b\u0301c\u0301d\u0301", "z\u0351\u036b\u0343a\u0361\u035cl\u0489g\u0321o",
    "\u0130stanbul I\u0131 i\u0307 \u1e9e stra\u00dfe \u00df", "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u03b1\u03c3 \u0421\u043e\u0431\u0430\u043a\u0430 \u0411\u0415\u0413\u0418\u0422", "\u01c4 \u01c5 \u01c6 \u1f88 \u1fb3",
    "\u4e00\u53ea\u68d5\u8272\u7684\u72d7 dog \u72d7dog", "\u72d7", "\u72d7\u72d7\u72d7\u548c\u732b", "\u3053\u3093\u306b\u3061\u306f \u30ab\u30bf\u30ab\u30ca \uff76\uff9e \u304c \u304b\u3099", "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\U00020000\U0002a6d6 \uf900 \u2f00",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e38\u0e19\u0e31\u0e02 \u0e01\u0e33 \u0643\u0644\u0628 \u05db\u05dc\u05d1 \u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\ufefbcat \ufdfa \ufb01x \ufb00 \ufb03", "\u2122 \u00ae \u00aa \u00ba \u2103 \u33a5 \u210d \u211d",
    "\uff28\uff45\uff4c\uff4c\uff4f\u3000\uff37\uff4f\uff52\uff4c\uff44 \uff11\uff12\uff13\uff01", "\u1d49c\U0001d4d0\U0001d7d8 \u24b6\u24d0", "\u0149 \u0132 \u01c7 \u1e9b\u0323", "\u00bc\u00bd\u00be \u2153 \u215b",
    "\U0001f600 dog \U0001f436\U0001f3fd running", "\U0001f436", "\U0001f436\U0001f436\U0001f436", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family", "\U0001f1fa\U0001f1f3 flag \U0001f1fa", "\u2764\ufe0f heart \u2764", "1\ufe0f\u20e3 2\u20e3", ":-) ;-) <3 \u00af\\_(\u30c4)_/\u00af",
    "\u201cquoted\u201d \u2014 dash\u2026 \u00bfque? \u00a1hola!", "\u2018single\u2019 \u201alow\u201a \u2039\u203a \u00ab\u00bb", "soft\u00adhyphen", "a\u2010b\u2011c\u2012d\u2013e\u2014f\u2015g\u2212h",
    "tabs\tand\nnew\r\nlines\u00a0and\u2003wide spaces", "a\u2028line\u2029paragraph", "a\u0085next", "a\u000bvt\u000cff", "a\u1680ogham\u202fnarrow\u205fmath", "end \n", "\n begin", "a \n b", "a\n\n\nb", "a  \tb", "a\u200bzero\u200cwidth\u200djoiner\u2060word", "\ufeffbom", "mid\ufeffbom",
    "nul\u0000byte", "bell\u0007 del\u007f esc\u001b[0m", "\ufffd", "a\ufffdb", "\u0080\u009f", "\ue000 private", "\u0378 unassigned", "\U000e0001tag", "\ufdd0\uffff nonchar", "\u180emongolian",
    "x" * 99, "x" * 100, "x" * 101, "x" * 300, "dog" * 34, "ab" * 200, "\u00e9" * 120, "\u72d7" * 120, "\U0001f436" * 40, "!" * 120, "1" * 120, " " * 50 + "a" + " " * 50, "a " * 100, "aa" * 50, "\u0301" * 40,
    "Donaudampfschiff" + "fahrtsgesellschaft" * 6, "pneumonoultramicroscopicsilicovolcanoconiosis", "https://example.org/a/b?c=d&e=f#g", "user@example.org", "C:\\path\\to\\file.txt", "snake_case camelCase kebab-case", "__init__ _x_", "a_b", "a&b &amp; &lt;b&gt; &#39; &eacute;",
    "<person> walks", "un ## ##ning ##s dog##s", "#hashtag ##double", "%s %d {} {0} $1 \\1", "(a(b(c)))", "a,b,c", "a , b , c", "...", "\u2026", "-", "--", "---", "a-b", "a - b", "*", "\u2022 bullet", "\u00d7 \u00f7 \u2260 \u221e \u221a", "\u20ac\u00a3\u00a5 100\u20ac",
    "\u2581", "\u2581a", "a\u2581b", "\u2581\u2581a \u2581", "</w>", "dog</w>", "\u0120dog \u010a", "<0x41> <0xE9>",
]

# Names of special tokens, which are tokens in a text unless the original says other.
SPECIAL = [
    "[MASK]", "a [MASK] runs", "a[MASK]runs", "[CLS] dog [SEP]", "[PAD][PAD]", "[UNK]", "[mask]", "[MASK", "[[MASK]]",
    "<mask>", "a <mask> runs", "a<mask>runs", "a  <mask>  runs", "<mask><mask>", "<s> dog </s>", "<pad>", "<unk>", "<MASK>", "</s", "dog </s> cat", "dog</s>cat", "</s>dog", "x<unk>y", "x <unk> y",
    "<|startoftext|> dog <|endoftext|>", "a<|endoftext|>b", "<|ENDOFTEXT|>", "<|endoftext", "<eos> <bos>",
]


def captions(n, seed):
    r = random.Random(seed)
    return [" ".join(r.choice(x) for x in (SUBJECTS, VERBS, PLACES)) for _ in range(n)]


def drawn(n, seed):
    """Texts of random pieces of the hard ones."""
    r = random.Random(seed)
    out = []
    for _ in range(n):
        words = []
        for _ in range(r.randint(1, 6)):
            s = r.choice([t for t in HARD if 0 < len(t) < 60])
            i = r.randrange(len(s))
            words.append(s[i : i + r.randint(1, 12)])
        out.append(r.choice(["", " ", "  ", "\t"]).join(words))
    return out


TEXTS = HARD + SPECIAL + captions(30, 1) + drawn(160, 2)
TRAIN = captions(1500, 3)


def folder(name):
    d = OUT / name
    shutil.rmtree(d, ignore_errors=True)
    d.mkdir(parents=True)
    return d


def save_vocab(t, d):
    f = json.loads(t.to_str())
    (d / "vocab.json").write_text(json.dumps(f["model"]["vocab"], ensure_ascii=False), encoding="utf-8")
    merges = [m if isinstance(m, str) else " ".join(m) for m in f["model"]["merges"]]
    (d / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")


def save(t, d):
    text = json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":"))
    (d / "tokenizer.json").write_text(text + "\n", encoding="utf-8")


def ids(t, texts=TEXTS):
    return [t.encode(s).ids for s in texts]


def bert():
    """A BERT tokenizer.json with [SEP], and the same from vocab.txt by transformers."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(TRAIN + HARD, trainers.WordPieceTrainer(vocab_size=700, special_tokens=names, show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    d = folder("bert")
    save(t, d)
    vocab = sorted(t.get_vocab().items(), key=lambda x: x[1])
    (d / "vocab.txt").write_text("".join(w + "\n" for w, _ in vocab), encoding="utf-8")
    slow = BertTokenizer(vocab=t.get_vocab())
    assert [slow.encode(s) for s in TEXTS] == ids(t)
    return ids(t)


def mpnet():
    """WordPiece with RoBERTa's special tokens, from vocab.txt and tokenizer_config.json."""
    words = [w for w, _ in sorted(json.loads((OUT / "bert/tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"].items(), key=lambda x: x[1])]
    words = ["<s>", "<pad>", "</s>", "[UNK]"] + words[5:] + ["<mask>"]
    vocab = {w: i for i, w in enumerate(words)}
    t = MPNetTokenizer(vocab=vocab, mask_token=AddedToken("<mask>", lstrip=True, normalized=False, special=True))
    d = folder("mpnet")
    (d / "vocab.txt").write_text("".join(w + "\n" for w in words), encoding="utf-8")
    (d / "tokenizer_config.json").write_text('{"tokenizer_class": "MPNetTokenizer", "unk_token": "[UNK]", "pad_token": "<pad>", "do_lower_case": true}\n')
    return [t.encode(s) for s in TEXTS]


def words():
    """A WordPiece tokenizer.json with other steps than BERT's."""
    t = Tokenizer(models.WordPiece({}, unk_token="<unk>", continuing_subword_prefix="@@", max_input_chars_per_word=20))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Replace("&amp;", "&")])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("merged_with_next")])
    names = ["<unk>", "<pad>"]
    t.train_from_iterator(TRAIN, trainers.WordPieceTrainer(vocab_size=400, special_tokens=names, continuing_subword_prefix="@@", show_progress=False))
    t.add_tokens([AddedToken("hills", single_word=True), AddedToken("new york", normalized=True), AddedToken("DOG", normalized=True, single_word=True)])
    save(t, folder("words"))
    return ids(t)


def whitespace():
    """As in small test models: Whitespace, and no template."""
    t = Tokenizer(models.WordPiece({}, unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.StripAccents()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits()])
    t.train_from_iterator(TRAIN, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[PAD]", "[UNK]"], show_progress=False))
    save(t, folder("whitespace"))
    return ids(t)


def roberta():
    """Byte-level BPE, from tokenizer.json and from vocab.json with merges.txt."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    t.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=700, special_tokens=names, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    f = json.loads(t.to_str())
    vocab = f["model"]["vocab"] | {"<mask>": len(f["model"]["vocab"])}
    full = RobertaTokenizer(vocab=vocab, merges=[tuple(m) for m in f["model"]["merges"]], mask_token=AddedToken("<mask>", lstrip=True, normalized=False, special=True))
    d = folder("roberta")
    save(full.backend_tokenizer, d)
    save_vocab(full.backend_tokenizer, d)
    spaced = RobertaTokenizer(vocab=vocab, merges=[tuple(m) for m in f["model"]["merges"]], add_prefix_space=True)
    save(spaced.backend_tokenizer, folder("roberta_spaced"))
    return [full.encode(s) for s in TEXTS], [spaced.encode(s) for s in TEXTS]


def clip():
    """CLIP, from tokenizer.json and from vocab.json with merges.txt."""
    t = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), behavior="removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=700, end_of_word_suffix="</w>", initial_alphabet=alphabet, show_progress=False))
    f = json.loads(t.to_str())
    vocab = f["model"]["vocab"]
    for w in [a + "</w>" for a in alphabet] + ["<|startoftext|>", "<|endoftext|>"]:
        vocab.setdefault(w, len(vocab))
    full = CLIPTokenizer(vocab=vocab, merges=[tuple(m) for m in f["model"]["merges"]])
    d = folder("clip")
    save(full.backend_tokenizer, d)
    save_vocab(full.backend_tokenizer, d)
    (d / "tokenizer_config.json").write_text('{"tokenizer_class": "CLIPTokenizer", "pad_token": "<|endoftext|>"}\n')
    return [full.encode(s) for s in TEXTS]


def sentence_piece(name, **options):
    d = folder(name)
    with tempfile.TemporaryDirectory() as tmp:
        text = pathlib.Path(tmp) / "text"
        text.write_text("\n".join(TRAIN), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=tmp + "/m", vocab_size=options.pop("vocab_size", 500), model_type="unigram", hard_vocab_limit=False, minloglevel=2, **options)
        model = (pathlib.Path(tmp) / "m.model").read_bytes()
    (d / "spiece.model.gz").write_bytes(gzip.compress(model, 9, mtime=0))
    return model, sentencepiece.SentencePieceProcessor(model_proto=model)


def siglip():
    """A SentencePiece model with SigLIP's numbers; its map of characters is that of nmt_nfkc."""
    model, sp = sentence_piece("siglip", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, byte_fallback=False, normalization_rule_name="nmt_nfkc")
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "spiece.model"
        path.write_bytes(model)
        t = SiglipTokenizer(str(path))
        (OUT / "siglip/tokenizer_config.json").write_text('{"tokenizer_class": "SiglipTokenizer", "pad_token": "</s>", "do_lower_case": true}\n')
        return [t.encode(s) for s in TEXTS], [sp.encode(s) + [1] for s in TEXTS]


def bytes_fallback():
    _, sp = sentence_piece("bytes", vocab_size=700, pad_id=3, byte_fallback=True, normalization_rule_name="identity")
    return [sp.encode(s) + [2] for s in TEXTS]


def unigram():
    """A tokenizer.json as T5's: its map of characters is that of siglip/spiece.model, which the test puts in."""
    from transformers.utils import sentencepiece_model_pb2_new as proto

    m = proto.ModelProto()
    m.ParseFromString(gzip.decompress((OUT / "siglip/spiece.model.gz").read_bytes()))
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in m.pieces], unk_id=2, byte_fallback=False))
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(m.normalizer_spec.precompiled_charsmap), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    t.add_special_tokens([AddedToken("<pad>", normalized=False), AddedToken("</s>", normalized=False), AddedToken("<unk>", normalized=False)])
    f = json.loads(t.to_str())
    f["normalizer"]["normalizers"][0]["precompiled_charsmap"] = ""
    (folder("unigram") / "tokenizer.json").write_text(json.dumps(f, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return ids(t)


def gemma():
    """BPE over whole texts with single bytes for what is not in the vocabulary, as SigLIP 2 has it."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "\u2581")])
    t.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"] + [f"<0x{b:02X}>" for b in range(256)]
    t.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=700, special_tokens=names, max_token_length=8, show_progress=False))
    f = json.loads(t.to_str())
    f["added_tokens"] = f["added_tokens"][:5]
    t = Tokenizer.from_str(json.dumps(f))
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    save(t, folder("gemma"))
    return ids(t)


def open_clip_ids(path):
    import unicodedata

    import ftfy

    ftfy.fix_text = lambda s: unicodedata.normalize("NFC", s)
    from open_clip import tokenizer as oc

    t = oc.SimpleTokenizer(bpe_path=path)
    return {"clip_real": [[t.sot_token_id] + t.encode(s) + [t.eot_token_id] for s in TEXTS]} | {
        "clip_" + c: [oc.get_clean_fn(c)(s) for s in TEXTS] for c in ("whitespace", "lower", "canonicalize")}


def main():
    out = {"texts": TEXTS, "bert": bert()}
    out["mpnet"], out["words"], out["whitespace"] = mpnet(), words(), whitespace()
    out["roberta"], out["roberta_spaced"] = roberta()
    out["clip"] = clip()
    out["siglip"], out["spiece"] = siglip()
    out["bytes"], out["unigram"], out["gemma"] = bytes_fallback(), unigram(), gemma()
    if len(sys.argv) > 1:
        out["bert_real"] = ids(Tokenizer.from_file(sys.argv[1]))
        out |= open_clip_ids(sys.argv[2])
    lines = ",\n".join(f'"{k}": {json.dumps(v, separators=(",", ":"))}' for k, v in out.items())
    (OUT / "goldens.json.gz").write_bytes(gzip.compress(("{\n" + lines + "\n}\n").encode(), 9, mtime=0))


main()
