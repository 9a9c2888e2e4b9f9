// Drives the page of a served gallery of images in a Chromium, and leaves pictures of it. In a folder
// outside the repository, with a server of the quickstart's test split at URL:
//
//	npm install puppeteer-core @sparticuz/chromium
//	cp .../experiments/page/check.mjs . && node check.mjs http://localhost:8080/ FOLDER
//
// It exits with 1 where something does not work.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import puppeteer from 'puppeteer-core';
const [url, folder] = process.argv.slice(2);
const file = join(folder, 'query.jpg');
writeFileSync(file, Buffer.from(await (await fetch(url + 'v1/thumbnails/7')).arrayBuffer()));
const b = await puppeteer.launch({args: [...chromium.args, '--no-sandbox'], executablePath: await chromium.executablePath(), headless: 'shell'});
const p = await b.newPage();
const bad = []; const foreign = [];
p.on('console', m => { if (['error','warning'].includes(m.type())) bad.push(m.text()); });
p.on('pageerror', e => bad.push('pageerror ' + e.message));
p.on('request', r => { if (!r.url().startsWith(url) && !r.url().startsWith('data:')) foreign.push(r.url()); });
await p.setViewport({width: 1000, height: 800});
const check = (name, ok, more = '') => { console.log(ok ? 'ok  ' : 'FAIL', name, more); if (!ok) process.exitCode = 1; };
const hits = () => p.$$eval('#hits button', l => l.map(x => x.dataset.row));
const text = () => p.$eval('#status', x => x.textContent);
const done = async () => { await p.waitForFunction(() => /hits for|chosen at random|bad/.test(document.querySelector('#status').textContent) , {timeout: 20000}); await p.waitForNetworkIdle(); };
await p.goto(url); await done();
check('random rows at start', (await hits()).length === 24, await text());
await p.screenshot({path: join(folder, 'start.png')});
await p.keyboard.press('/');
check('slash focuses the field', await p.evaluate(() => document.activeElement.id === 'text'));
await p.keyboard.type('a big red circle'); await p.keyboard.press('Enter');
await p.waitForFunction(() => /hits for .a big/.test(document.querySelector('#status').textContent)); await p.waitForNetworkIdle();
check('text search', (await hits()).length === 24, await text());
check('address keeps it', (await p.url()).includes('#text=a%20big%20red%20circle'), p.url());
const loaded = await p.$$eval('#hits img', l => l.filter(i => i.complete && i.naturalWidth > 0).length);
check('thumbnails load', loaded >= 12, String(loaded));
await p.screenshot({path: join(folder, 'light.png')});
const first = (await hits())[0];
await p.keyboard.press('ArrowDown');
check('arrow goes to the first hit', await p.evaluate(r => document.activeElement.dataset.row === r, first));
await p.keyboard.press('ArrowRight'); await p.keyboard.press('ArrowDown');
const at = await p.evaluate(() => [...document.querySelectorAll('#hits button')].indexOf(document.activeElement));
check('arrows move in the grid', at > 2, String(at));
const row = await p.evaluate(() => document.activeElement.dataset.row);
await p.keyboard.press('Enter');
await p.waitForFunction(() => /what is like/.test(document.querySelector('#status').textContent) && /hits for/.test(document.querySelector('#status').textContent));
check('enter on a hit searches by it', p.url().endsWith('#row=' + row) && !(await hits()).includes(row), p.url());
await p.goBack(); await p.waitForFunction(() => /hits for .a big/.test(document.querySelector('#status').textContent));
check('back goes back', (await hits())[0] === first);
const f = await p.$('#file'); await f.uploadFile(file);
await p.waitForFunction(() => /hits for what is like query.jpg/.test(document.querySelector('#status').textContent));
check('an image searches', (await hits())[0] === '7', (await hits()).slice(0,3).join());
await p.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'dark'}]);
check('dark', await p.evaluate(() => getComputedStyle(document.body).backgroundColor) === 'rgb(21, 24, 28)');
await p.waitForNetworkIdle(); await p.screenshot({path: join(folder, 'dark.png')});
await p.setViewport({width: 390, height: 780}); await p.screenshot({path: join(folder, 'phone.png')});
check('no sideways scroll on a phone', await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
await p.evaluate(() => { document.querySelector('#text').value = '...'; document.querySelector('#form').requestSubmit(); });
await p.waitForFunction(() => document.querySelector('#status').classList.contains('bad'));
check('an error is shown', (await text()).includes('nothing of the text'), await text());
check('nothing foreign', foreign.length === 0, foreign.join());
check('no errors but the refused one', bad.filter(x => !x.includes('400')).length === 0, bad.join(' | '));
await b.close();
