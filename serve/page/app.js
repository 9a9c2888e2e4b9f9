"use strict";
// The page of a gallery: it asks the API of this server and nothing else. Text of others is only
// ever shown as text.
const $ = id => document.getElementById(id);
const status = (text, bad) => { $("status").textContent = text; $("status").classList.toggle("bad", !!bad); };
let info = null;
let newest = 0; // search whose answer is shown: a late one of before is dropped

// The token of a server that asks for one is kept until the tab is closed.
let token = sessionStorage.getItem("token");

async function fetched(path, options = {}) {
  const shown = token, headers = { ...options.headers };
  if (shown) headers.Authorization = "Bearer " + shown;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status !== 401) return answer;
  if (token === shown) { // else another request has asked for it
    const entered = prompt(shown ? "This token is none of the server's. Token:" : "This server asks for a token:");
    if (!entered) return answer;
    sessionStorage.setItem("token", token = entered.trim());
  }
  return fetched(path, options);
}

// A picture that needs a token cannot be named by its address alone.
async function picture(image, path) {
  if (!token) { image.src = path; return; }
  const answer = await fetched(path).catch(() => null);
  if (!answer || !answer.ok) return;
  const url = URL.createObjectURL(await answer.blob());
  image.onload = image.onerror = () => URL.revokeObjectURL(url);
  image.src = url;
}

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetched(path, options);
  const json = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(json.error || "the server answered " + answer.status);
  return json;
}

async function search(query, what) {
  const mine = ++newest;
  status("searching for " + what + " ...");
  try {
    const k = Math.min(Number($("k").value), info ? info.limits.k : 100);
    const answer = await ask("/v1/search", { ...query, k });
    if (mine !== newest) return;
    show(answer.hits);
    const how = answer.index ? "by an index with a measured recall@" + answer.recall_k + " of " + answer.recall.toFixed(3) : "all rows compared";
    status(answer.hits.length + " hits for " + what + ", " + answer.milliseconds + " ms, " + how);
  } catch (error) {
    if (mine === newest) status(error.message, true);
  }
}

function show(hits) {
  const list = $("hits");
  list.classList.toggle("texts", !(info && info.thumbnails));
  list.replaceChildren(...hits.map(hit => {
    const name = hit.name || hit.caption || "row " + hit.row;
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.row = hit.row;
    button.title = name;
    if (hit.thumbnail) {
      const image = document.createElement("img");
      image.alt = "";
      image.loading = "lazy";
      picture(image, hit.thumbnail);
      button.append(image);
    }
    const label = document.createElement("span");
    label.className = "name";
    label.textContent = name;
    button.append(label);
    if (hit.score !== undefined) {
      const score = document.createElement("span");
      score.className = "score";
      score.textContent = hit.score.toFixed(4);
      button.append(score);
    }
    button.addEventListener("click", () => go({ row: hit.row }, "what is like " + name));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }));
}

// go searches and keeps the query in the address, so that the way back works.
function go(query, what) {
  const hash = query.text !== undefined ? "#text=" + encodeURIComponent(query.text) : query.row !== undefined ? "#row=" + query.row : "";
  if (hash && location.hash !== hash) history.pushState(null, "", hash);
  return search(query, what);
}

function fromAddress() {
  const text = location.hash.match(/^#text=(.*)$/), row = location.hash.match(/^#row=(\d+)$/);
  try {
    if (text) { $("text").value = decodeURIComponent(text[1]); return search({ text: $("text").value }, "“" + $("text").value + "”"); }
  } catch { /* no text that could be read */ }
  if (row) return search({ row: Number(row[1]) }, "what is like row " + row[1]);
  return some();
}

async function some() {
  const mine = ++newest, n = Math.min(Number($("k").value), info.rows), rows = new Set();
  while (rows.size < n) rows.add(Math.floor(Math.random() * info.rows));
  try {
    const items = await Promise.all([...rows].map(row => ask("/v1/items/" + row)));
    if (mine !== newest) return;
    show(items);
    status(items.length + " of " + info.rows.toLocaleString("en") + " rows, chosen at random");
  } catch (error) {
    if (mine === newest) status(error.message, true);
  }
}

function byImage(file) {
  if (!file) return;
  if (file.size > info.limits.body_bytes * 0.7) return status("the file has " + file.size + " bytes, more than the server takes", true);
  const reader = new FileReader();
  reader.onload = () => search({ image: String(reader.result).replace(/^[^,]*,/, "") }, "what is like " + file.name);
  reader.onerror = () => status("the file cannot be read", true);
  reader.readAsDataURL(file);
}

$("form").addEventListener("submit", event => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (text) go({ text }, "“" + text + "”"); else some();
});
$("random").addEventListener("click", () => { history.pushState(null, "", location.pathname); some(); });
$("file").addEventListener("change", () => { byImage($("file").files[0]); $("file").value = ""; });
addEventListener("popstate", fromAddress);
addEventListener("dragover", event => { event.preventDefault(); document.body.classList.add("drop"); });
addEventListener("dragleave", event => { if (!event.relatedTarget) document.body.classList.remove("drop"); });
addEventListener("drop", event => {
  event.preventDefault();
  document.body.classList.remove("drop");
  if (info && info.image_queries) byImage(event.dataTransfer.files[0]);
});
addEventListener("keydown", event => {
  const field = event.target.matches("input, select");
  if (event.key === "/" && !field) { event.preventDefault(); $("text").focus(); $("text").select(); return; }
  const buttons = [...document.querySelectorAll("#hits button")], at = buttons.indexOf(document.activeElement);
  if (event.key === "ArrowDown" && event.target === $("text") && buttons.length) { event.preventDefault(); buttons[0].focus(); return; }
  if (at < 0) return;
  const top = buttons[0].getBoundingClientRect().top;
  const columns = Math.max(1, buttons.filter(b => Math.abs(b.getBoundingClientRect().top - top) < 2).length);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -at, End: buttons.length - 1 - at }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const next = at + step;
  if (next < 0 && event.key === "ArrowUp") $("text").focus(); else if (buttons[next]) buttons[next].focus();
});

(async () => {
  try {
    info = await ask("/v1/info");
  } catch (error) {
    return status(error.message, true);
  }
  $("about").textContent = info.rows.toLocaleString("en") + " " + (info.side === "image" ? "images" : "texts") + ", " + info.dim + " channels" +
    (info.step ? ", model of step " + info.step.toLocaleString("en") : "") + (info.index ? ", index with a measured recall@" + info.recall_k + " of " + info.recall.toFixed(3) : "");
  $("text").disabled = $("go").disabled = !info.text_queries;
  if (!info.text_queries) $("text").placeholder = "this model encodes no texts: choose a row";
  $("filelabel").hidden = !info.image_queries;
  fromAddress();
})();
