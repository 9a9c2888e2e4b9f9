"""Golden words for data/tokenizer from NLTK.

Needs `pip install nltk` (made with 3.10.4). Writes data/tokenizer/testdata/words.json: texts with the words of
nltk.word_tokenize in lower case. Its model of sentences (Punkt) is data that is loaded from elsewhere, so a text
here is a list of sentences: nothing is cut, and each is given to NLTKWordTokenizer, as word_tokenize does.

  python tools/goldens/words.py [captions.txt]

With a file of captions of one sentence each, it prints their number and the CRC-32 of their words, a line each, joined
by blanks.
"""

import json
import pathlib
import sys
import zlib

from nltk.tokenize.destructive import NLTKWordTokenizer

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/tokenizer/testdata/words.json"

TEXTS = [
    ["A man in a blue shirt is standing on a ladder cleaning a window ."],
    ["Two young guys with shaggy hair look at their hands while hanging out in the yard."],
    ["a dog runs", ],
    ["A dog runs.", "A cat sits!", "What is it?", "Nothing"],
    ["The man's dog isn't barking, and they're glad it won't."],
    ["He can't, I'm sure; we'd say she'll go, you've seen it."],
    ["I cannot go, gonna wanna stay, gimme that, lemme see, gotta run, d'ye know, more'n that"],
    ["'Tis a dog, 'twas a cat, 'rock 'n' roll, 'em, 's, the dogs' tails"],
    ['"Hello," said the man (with a hat) "and goodbye".'],
    ["A sign reads \"STOP\" and another ``go''."],
    ["He said 'stop' and 'go now' to the 'boys'."],
    ["two-piece T-shirt, 1,000 people, 3:30 pm, 3.5 miles, $5.00 or 10%"],
    ["wait... what?!", ],
    ["a man -- in a hat -- walks; e.g. here"],
    ["A boy [in red] {jumps} <high>"],
    ["50% of #tags & @names * stars; a/b c\\d"],
    ["caf\u00e9 \u201cquoted\u201d \u2018single\u2019 \u00abfrench\u00bb \u2013 dash \u2014 long"],
    ["ends with comma,"],
    ["ends with colon:"],
    ["ends with quote and dot.\""],
    ["ends with dot in brackets.)"],
    ["mr. smith and dr. jones of st. louis stand at 5 p.m. sharp"],
    ["the u.s. flag waves."],
    ["a ... b .. c ."],
    ["player no five.", "he runs"],
    ["  blanks   and\ttabs  "],
    ["na\u00efve \u00fcber-cool '\u00e9t\u00e9"],
    ["it 's a dog 's life"],
    ["o'clock rock'n'roll y'all ma'am"],
    ["A woman ; she 's tall"],
    ["<person> walks his dog"],
    [],
]

words = NLTKWordTokenizer().tokenize
cases = []
for sentences in TEXTS:
    got = []
    for s in sentences:
        got += words(s.lower().strip())
    cases.append({"text": " ".join(sentences), "words": got})
OUT.write_text(json.dumps(cases, indent=1) + "\n")

if len(sys.argv) > 1:
    crc, n = 0, 0
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        crc, n = zlib.crc32((" ".join(words(line.lower().strip())) + "\n").encode(), crc), n + 1
    print(n, "captions", f"{crc:08x}")
