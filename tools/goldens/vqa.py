"""Values for eval/vqa_golden_test.go: answers as the evaluation of VQA compares them, and their accuracies.

Run with Python 3 from the root of the repository:

    python tools/goldens/vqa.py

It writes eval/testdata/vqa.json. The rules are those published at visualqa.org/evaluation.html with the details of the
official script (GT-Vision-Lab/VQA): what it does with marks beside spaces, that it normalizes only where people
disagree, and that it takes out 32 points at most.
"""

import json
import pathlib
import random
import re

gen = random.Random(11)

WHOLE = """'ow's'at 'twas ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd
he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't mightn't've must've mustn't needn't not've
o'clock oughtn't shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd someone'd've
someone'll someone's something'd something'd've something'll that's there'd there'd've there're there's they'd they'd've
they'll they're they've wasn't we'd've we've weren't what'll what're what's what've when's where'd where's where've who'd
who'd've who'll who's who've why'll why're why's won't would've wouldn't wouldn't've y'all y'all'd've y'all'll you'd
you'd've you'll you're you've""".split()
CONTRACTIONS = {w[:m.start()] + w[m.end():]: w for w in WHOLE for m in re.finditer("'", w)} | {"somebody'd": "somebodyd"}
NUMBERS = {w: str(max(0, i - 1)) for i, w in enumerate("none zero one two three four five six seven eight nine ten".split())}
MARKS = ";/[\"]{}()=+\\_-><@`,?!"


def normalize(text):
    number = re.search(r"\d,\d", text)
    out = text
    for m in MARKS:
        out = out.replace(m, "" if number or m + " " in text or " " + m in text else " ")
    out = re.sub(r"\.(?!\d)", "", out, count=32)
    words = [NUMBERS.get(w, w) for w in out.lower().split()]
    return " ".join(CONTRACTIONS.get(w, w) for w in words if w not in ("a", "an", "the"))


def accuracy(answer, given):
    trim = lambda s: s.replace("\n", " ").replace("\t", " ").strip()
    answer, given = trim(answer), [trim(g) for g in given]
    if len(set(given)) > 1:
        answer, given = normalize(answer), [normalize(g) for g in given]
    scores = []
    for i in range(len(given)):
        others = given[:i] + given[i + 1:]
        scores.append(min(1, others.count(answer) / 3))
    return sum(scores) / len(scores)


PIECES = list(CONTRACTIONS) + WHOLE + list(NUMBERS) + "Yes no A an the dog dogs 3.5 1,000 10 blue-green red/white U.S.A. it's lets Im".split()
GLUE = [" "] * 12 + list(MARKS) + [", ", " ,", "\n", "\t", ".", ". ", "'", "\u00a0", "\u0130", "\u03a3", "\u0663", "\u00e9"]


def text():
    if gen.random() < 0.02:
        return "." * gen.randint(30, 36) + "x"
    out = "".join(gen.choice(PIECES) + gen.choice(GLUE) for _ in range(gen.randint(1, 4)))
    return out if gen.random() < 0.3 else out[:-1]


def question():
    pool = [text() for _ in range(gen.randint(1, 4))]
    # The same answer written in another way.
    pool += [t.upper() if gen.random() < 0.5 else "the " + t for t in pool[: gen.randint(0, 2)]]
    given = [gen.choice(pool) for _ in range(10)]
    answer = gen.choice(pool) if gen.random() < 0.9 else text()
    return {"answer": answer, "given": given, "accuracy": accuracy(answer, given)}


if __name__ == "__main__":
    texts = [text() for _ in range(300)]
    out = {
        "normalized": [[t, normalize(t)] for t in texts],
        "questions": [question() for _ in range(200)],
    }
    pathlib.Path("eval/testdata/vqa.json").write_text(json.dumps(out, ensure_ascii=False, separators=(",", ":")) + "\n")
