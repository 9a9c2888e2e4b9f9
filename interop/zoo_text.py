"""Makes tiny models of texts as whole folders, with tokenizer and modules, and what their programs make of texts.

    venv/bin/python interop/zoo_text.py FOLDER [FAMILY ...]

go test ./interop -run TestTextZoo calls it. Each model gets a folder FOLDER/FAMILY-NUMBER; FOLDER/FAMILY-NUMBER.safetensors has vectors of the lines of
FOLDER/texts.json, by their places in it (rows). A package that is not there is told in a line, with the exit status 77.
"""
import json
import os
import sys

try:
    import model2vec
    import numpy as np
    import tokenizers
    import torch
    import transformers as T
    from safetensors.numpy import save_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as M
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as e:
    print(e)
    sys.exit(77)

T.logging.set_verbosity_error()
folder, wanted = sys.argv[1].rstrip("/") + "/", sys.argv[2:]
TEXTS = ["a brown dog runs through deep snow", "A Dog!", "two children laugh, and laugh again", "caf\u00e9 \u72d7\u72d7 zebra-crossing", "deep  snow ",
         "the red dog and the brown dog", "a dog " * 40, "\u2603", "don't run", "x", "query: the snow", "UNKNOWN \U0001f600 words of no vocabulary"]
CORPUS = TEXTS[:7] + ["children run in the snow", "the dog laughs", "snow falls on a red house"]


def tokenizer(kind, pad=True, lower=True, around=True):
    """A tokenizer of a kind that is learned from a few lines."""
    specials = (["[PAD]"] if pad else []) + ["[UNK]", "[CLS]", "[SEP]"]
    if kind == "wordpiece":
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=specials)
    elif kind == "bytes":
        t = Tokenizer(models.BPE())
        t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=lower), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    elif kind == "unigram":
        t = Tokenizer(models.Unigram())
        t.normalizer, t.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=specials, unk_token="[UNK]")
    else:
        t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        t.normalizer, t.pre_tokenizer = normalizers.Lowercase() if lower else None, pre_tokenizers.Whitespace()
        trainer = trainers.WordLevelTrainer(special_tokens=specials)
    t.train_from_iterator(CORPUS, trainer)
    if around:
        ids = {s: t.token_to_id(s) for s in specials}
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])])
    return t


def table(rows, width, dtype=torch.float32):
    return torch.randn(rows, width).to(dtype)


def static():
    """StaticEmbedding of sentence-transformers: (model, texts that it is not asked for)."""
    for t, width, dtype, behind in (
            (tokenizer("wordpiece"), 24, torch.float32, []), (tokenizer("wordpiece", lower=False), 7, torch.float32, [M.Normalize()]),
            (tokenizer("wordpiece", pad=False), 1, torch.float32, []), (tokenizer("wordpiece", around=False), 16, torch.float32, [M.Normalize()]),
            (tokenizer("bytes"), 24, torch.float32, [M.Normalize()]), (tokenizer("bytes", lower=False, around=False), 33, torch.float32, []),
            (tokenizer("bytes", pad=False, around=False), 5, torch.float32, []), (tokenizer("unigram"), 24, torch.float32, []),
            (tokenizer("unigram", pad=False), 9, torch.float32, [M.Normalize()]), (tokenizer("words"), 12, torch.float32, []),
            (tokenizer("words", lower=False, pad=False), 12, torch.float32, [M.Normalize()]), (tokenizer("wordpiece"), 256, torch.float32, [M.Normalize()]),
            (tokenizer("wordpiece"), 24, torch.float32, [M.Dense(24, 10)]), (tokenizer("bytes"), 8, torch.float32, [M.Dense(8, 8, bias=False, activation_function=torch.nn.Identity()), M.Normalize()]),
            (tokenizer("unigram"), 24, torch.float32, [M.Dense(24, 24, activation_function=torch.nn.ReLU()), M.Dense(24, 6), M.Normalize()]),
            (tokenizer("wordpiece"), 24, torch.float16, []), (tokenizer("wordpiece"), 24, torch.bfloat16, [M.Normalize()])):
        yield SentenceTransformer(modules=[M.StaticEmbedding(t, embedding_weights=table(t.get_vocab_size(), width, dtype).float()), *behind], device="cpu")
    t = tokenizer("wordpiece")
    yield SentenceTransformer(modules=[M.StaticEmbedding(t, embedding_weights=table(t.get_vocab_size(), 24))], prompts={"query": "query: ", "document": ""}, default_prompt_name="query", device="cpu")
    t = tokenizer("wordpiece")  # a table with more rows than tokens
    yield SentenceTransformer(modules=[M.StaticEmbedding(t, embedding_weights=table(t.get_vocab_size() + 40, 24))], device="cpu")
    t = tokenizer("unigram")
    t.add_tokens(["zebra", "house"])
    yield SentenceTransformer(modules=[M.StaticEmbedding(t, embedding_weights=table(t.get_vocab_size(), 24)), M.Normalize()], device="cpu")


def model2vec_():
    """StaticModel of model2vec: tables with a row and a weight of each token."""
    for t, width, more in (
            (tokenizer("wordpiece"), 24, {}), (tokenizer("wordpiece", lower=False), 7, dict(normalize=True)), (tokenizer("wordpiece"), 24, dict(weights=True)),
            (tokenizer("wordpiece"), 24, dict(mapping=11, normalize=True)), (tokenizer("wordpiece"), 24, dict(mapping=9, weights=True)), (tokenizer("unigram"), 16, dict(weights=True, normalize=True)),
            (tokenizer("unigram", pad=False), 16, dict(mapping=5)), (tokenizer("bytes"), 16, {}), (tokenizer("bytes", pad=False, around=False), 16, dict(weights=True, normalize=True)),
            (tokenizer("words"), 24, {}), (tokenizer("words", lower=False, pad=False), 3, dict(weights=True)), (tokenizer("wordpiece"), 24, dict(dtype=np.float16)),
            (tokenizer("wordpiece"), 24, dict(dtype=np.float64, normalize=True)), (tokenizer("wordpiece"), 24, dict(mapping=9, weights=True, dtype=np.float16)),
            (tokenizer("wordpiece"), 24, dict(max_length=100)), (tokenizer("wordpiece"), 24, dict(dtype=np.int8))):
        rows, dtype = t.get_vocab_size(), more.get("dtype", np.float32)
        mapping = np.random.randint(0, more["mapping"], rows) if "mapping" in more else None
        vectors = np.random.randn(more.get("mapping", rows), width)
        yield model2vec.StaticModel((vectors * 9 if dtype == np.int8 else vectors).astype(dtype), t, config={"model_type": "model2vec"}, normalize=more.get("normalize", False), token_mapping=mapping,
                                    weights=np.random.rand(rows).astype(np.float32) if "weights" in more else None, max_length=more.get("max_length", 512))


FAMILIES = {"static": static, "model2vec": model2vec_}

with open(folder + "texts.json", "w") as f:
    json.dump(TEXTS, f)
for name, family in FAMILIES.items():
    if wanted and name not in wanted:
        continue
    torch.manual_seed(3)
    np.random.seed(3)
    for i, model in enumerate(family()):
        where = f"{folder}{name}-{i}"
        rows = [k for k in range(len(TEXTS)) if len(TEXTS[k]) < 200 or name != "model2vec"]
        if name == "model2vec":
            stored, model.embedding = model.embedding, model.embedding.astype(np.float32)  # float16 would round their sums
        with torch.no_grad():
            vectors = np.asarray(model.encode([TEXTS[k] for k in rows]), np.float32)
        if name == "model2vec":
            model.embedding = stored
        (model.save if name != "model2vec" else model.save_pretrained)(where)
        save_file({"rows": np.array(rows, np.int64), "vectors": np.ascontiguousarray(vectors)}, where + ".safetensors")
with open(folder + "versions.txt", "w") as f:
    import sentence_transformers
    f.write(f"sentence-transformers {sentence_transformers.__version__}, model2vec {model2vec.__version__}, tokenizers {tokenizers.__version__}, torch {torch.__version__}")
