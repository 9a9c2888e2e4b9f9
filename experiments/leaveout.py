"""Leaves out of a list of images with captions every image of which a caption is a sentence of a test.

    python3 experiments/leaveout.py LIST.json OUT.json FILE...

LIST.json is a list of {"image", "caption", ...} as data.kind = "captions" reads it. A FILE is a table with tabs, whose cells
are sentences, or JSON, whose strings are. Letters and digits alone are compared, without case.
"""
import json
import re
import sys


def words(text):
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def sentences(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        if path.endswith(".json"):
            yield from strings(json.load(file))
        else:
            for line in file:
                yield from line.rstrip("\n").split("\t")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    source, target, *files = sys.argv[1:]
    tested = {words(s) for path in files for s in sentences(path)} - {""}
    with open(source, encoding="utf-8") as file:
        rows = json.load(file)
    captions = lambda row: [row["caption"]] if isinstance(row["caption"], str) else row["caption"]
    kept = [row for row in rows if not any(words(c) in tested for c in captions(row))]
    with open(target, "w", encoding="utf-8") as file:
        json.dump(kept, file)
    print(f"{len(rows) - len(kept)} of {len(rows)} images are left out, {len(kept)} are in {target}")


if __name__ == "__main__":
    main()
