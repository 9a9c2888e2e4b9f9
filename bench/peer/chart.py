"""The speed ratios of a comparison as a picture, docs/beside-pytorch.svg.

  python bench/peer/compare.py --config configs/bench/albef-small.toml --config configs/bench/clip-small.toml \
      --config configs/bench/heads.toml --peers eager --rounds 2 --json compare.json
  python bench/peer/chart.py compare.json docs/beside-pytorch.svg
"""
import json
import sys
from xml.sax.saxutils import escape

OWN, PEER, INK, MUTED = "#1f6f8b", "#c9d1d9", "#1b1f24", "#57606a"
WIDTH, LEFT, RIGHT, ROW, TOP = 720, 190, 110, 46, 66


def main():
    source, out = sys.argv[1:]
    with open(source) as f:
        found = json.load(f)
    rows = [r for r in found["rows"] if r["peer"] == "eager"]
    most = max(max(r["speed"] for r in rows), 1)
    scale = (WIDTH - LEFT - RIGHT) / most
    height = TOP + ROW * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="Helvetica, Arial, \'Liberation Sans\', \'DejaVu Sans\', sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        f'<text x="20" y="30" font-size="17" font-weight="bold" fill="{INK}">A training step beside PyTorch (higher is faster)</text>',
        f'<text x="20" y="50" font-size="12" fill="{MUTED}">samples a second on two CPU cores, PyTorch eager = 1 (grey); in brackets the peak memory (of PyTorch 100%)</text>',
    ]
    for i, r in enumerate(rows):
        y = TOP + ROW * i
        own = r["speed"] * scale
        parts += [
            f'<text x="{LEFT - 12}" y="{y + 22}" font-size="14" text-anchor="end" fill="{INK}">{escape(r["config"])} {escape(r["precision"])}</text>',
            f'<rect x="{LEFT}" y="{y + 4}" width="{own:.1f}" height="17" rx="2" fill="{OWN}"/>',
            f'<rect x="{LEFT}" y="{y + 23}" width="{scale:.1f}" height="10" rx="2" fill="{PEER}"/>',
            f'<text x="{LEFT + own + 8:.1f}" y="{y + 18}" font-size="14" font-weight="bold" fill="{INK}">{r["speed"]:.2f} '
            f'<tspan font-weight="normal" fill="{MUTED}">({r["memory"]:.0%})</tspan></text>',
        ]
    about = f'{found["machine"].partition(", Python")[0]}, {found["date"][:10]}: bench/peer/compare.py'
    parts += [f'<text x="20" y="{height - 14}" font-size="11" fill="{MUTED}">{escape(about)}</text>', "</svg>"]
    with open(out, "w") as f:
        f.write("\n".join(parts) + "\n")


main()
