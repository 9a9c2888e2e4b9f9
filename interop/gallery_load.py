"""Loads the files of an exported gallery with FAISS, DuckDB and the csv module, and prints what they find as JSON.

    python gallery_load.py FOLDER ROW    # x.faiss, y.faiss, x.parquet and x.csv of FOLDER; ROW is the query
"""
import csv
import json
import sys

import duckdb
import faiss
import numpy as np

folder, row = sys.argv[1], int(sys.argv[2])
out = {}
for name in ("x", "y"):
    index = faiss.read_index(f"{folder}/{name}.faiss")
    scores, rows = index.search(index.reconstruct(row)[None], 5)
    again = f"{folder}/{name}.again"
    faiss.write_index(index, again)
    same = open(again, "rb").read() == open(f"{folder}/{name}.faiss", "rb").read()
    out[name] = {"rows": rows[0].tolist(), "scores": scores[0].tolist(), "same": same}
table = f"{folder}/x.parquet"
out["parquet"] = [list(r) for r in duckdb.sql(f"""
    select id, payload->>'k', list_cosine_similarity(features, (select features from '{table}' where id = 'r{row}')) as score
    from '{table}' where (payload->>'k')::int < 3 order by score desc limit 5""").fetchall()]
with open(f"{folder}/x.csv", newline="") as f:
    table = list(csv.DictReader(f))
read = np.array([json.loads(r["features"]) for r in table], "float32")
out["csv"] = {"equal": bool((read == np.load(f"{folder}/x.npy")).all()), "id": table[row]["id"],
              "payload": json.loads(table[row]["payload"])}
print(json.dumps(out))
