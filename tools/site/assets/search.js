// Full text search without a server: sections that hold every word of the query, the heading counts most.
const anchor = heading => heading.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");

function sections({url, text}) {
  const all = [];
  let title = "", fenced = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    const heading = !fenced && line.match(/^#+ +(.*)$/);
    if (heading) {
      title ||= heading[1];
      all.push({title, heading: heading[1], url: url + "#" + anchor(heading[1]), lines: []});
    } else if (all.length) {
      all.at(-1).lines.push(line);
    }
  }
  return all.map(s => ({...s, text: s.lines.join("\n"), lower: (s.heading + "\n" + s.lines.join("\n")).toLowerCase()}));
}

function score(section, words) {
  const heading = (section.title + " " + section.heading).toLowerCase();
  let sum = 0;
  for (const word of words) {
    const times = section.lower.split(word).length - 1;
    if (!times && !heading.includes(word)) return 0;
    sum += Math.log1p(times) + (heading.includes(word) ? 5 : 0);
  }
  return sum;
}

function excerpt(section, words) {
  const plain = section.text.replace(/\]\([^)]*\)|-{3,}|[`*|[\]]/g, "").replace(/\s+/g, " ");
  const at = Math.max(0, plain.toLowerCase().indexOf(words.find(w => plain.toLowerCase().includes(w))) - 60);
  return plain.slice(at, at + 200);
}

function show(query) {
  const found = document.getElementById("found"), article = document.querySelector("article");
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = !words.length;
  article.hidden = !found.hidden;
  if (found.hidden) return;
  all ??= pages.flatMap(sections);
  const hits = all.map(s => [score(s, words), s]).filter(([n]) => n > 0).sort(([a], [b]) => b - a).slice(0, 30);
  found.replaceChildren(...hits.map(([, s]) => {
    const entry = document.createElement("p"), link = document.createElement("a");
    link.href = root + s.url;
    link.textContent = s.heading === s.title ? s.title : s.title + ": " + s.heading;
    link.onclick = () => { box.value = ""; show(""); };
    entry.append(link, document.createElement("br"), excerpt(s, words));
    return entry;
  }));
  if (!hits.length) found.textContent = `No section has all of: ${words.join(", ")}.`;
}

let all;
const box = document.getElementById("search");
box.oninput = () => show(box.value);
