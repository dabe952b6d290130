// Opens reports in a real browser and says what does not hold, one line each; nothing printed and status 0 is good.
//
//   node report.mjs CHROMIUM SCREENSHOTS PAGE.html…
//
// Every page: no error, no request but for the file itself, marks in every chart, values under the pointer and by keys, series left out, the
// other scale, CSV, dark and light, 360 px without scrolling sideways, print, and nothing serious that axe-core finds. Of a timeline it tells
// how long a frame takes to draw; told on standard error, since machines differ.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [program, folder, ...files] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: program, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
let wrong = 0;

async function opened(file, options) {
  const name = basename(file, ".html");
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage(), url = `file://${file}`;
  const check = (holds, what) => { if (!holds) { wrong++; console.log(`${name}: ${what}`); } };
  page.on("console", (message) => check(message.type() !== "error", `console: ${message.text()}`));
  page.on("pageerror", (error) => check(false, `error: ${error.message}`));
  page.on("request", (request) => check(request.url() === url || /^(data|blob):/.test(request.url()), `asks for ${request.url()}`));
  await page.goto(url);
  return { page, context, check, shot: (as) => page.screenshot({ path: join(folder, `${name}-${as}.png`), fullPage: true }) };
}

// What axe-core finds that is serious or critical.
async function accessible({ page, check }, as) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, impact, nodes } of found.violations) {
    check(!["serious", "critical"].includes(impact), `${as}: axe-core: ${id} (${impact}) at ${nodes[0].target.join(" ")}: ${nodes[0].failureSummary}`);
  }
}

async function figures({ page, check }) {
  for (const figure of await page.locator("figure").all()) {
    const title = (await figure.locator("h3").first().textContent()).trim();
    check(await figure.locator("table tbody tr").count() > 0, `${title}: its table is empty`);
    check((await figure.locator("figcaption p").textContent()).trim().length > 0, `${title}: it has no text`);
    const plot = figure.locator(".plot[role=group]");
    if (await plot.count() === 0) continue;
    const marks = figure.locator("[data-scale]:not([hidden]) .mark");
    check(await marks.count() > 0, `${title}: it has no marks`);
    await plot.scrollIntoViewIfNeeded();
    // A plot may be taller than the window.
    await marks.first().evaluate((mark) => mark.scrollIntoView({ block: "center" }));
    const box = await marks.first().boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    check(await page.locator("#tip").isVisible(), `${title}: nothing is shown under the pointer`);
    await page.mouse.move(2, 2);
    await plot.focus();
    await page.keyboard.press("ArrowRight");
    check((await page.locator("#said").textContent()).length > 3, `${title}: keys say nothing`);
    await page.keyboard.press("Escape");
    const first = figure.locator(".legend button").first();
    const seen = () => figure.locator("[data-scale]:not([hidden]) .mark.k0").evaluateAll((all) => all.filter((mark) => mark.style.display !== "none").length);
    const before = await seen();
    await first.click();
    check(before === 0 || await seen() === 0, `${title}: a series is not left out`);
    await first.click();
    check(await seen() === before, `${title}: a series does not come back`);
    const scales = figure.locator("[data-scale]");
    if (await scales.count() > 1) {
      const shown = () => figure.locator("[data-scale]:not([hidden])").getAttribute("data-scale");
      const was = await shown();
      await figure.getByRole("button", { name: /scale$/ }).click();
      check(await shown() !== was, `${title}: the other scale is not shown`);
      check(await marks.count() > 0, `${title}: the other scale has no marks`);
      await figure.getByRole("button", { name: /scale$/ }).click();
    }
  }
}

async function copies({ page, check }) {
  const figure = page.locator("figure").first();
  await figure.getByRole("button", { name: "copy CSV" }).click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  const rows = text.trim().split("\r\n");
  check(rows.length === await figure.locator("tr").count(), `CSV has ${rows.length} lines`);
  check(/\d/.test(rows[1] ?? "") && !/[\u202f\u2009]/.test(text), `CSV has no numbers: ${rows[1]}`);
  const saves = page.locator("figure:has(svg.chart)").first();
  for (const [words, begins] of [["SVG", "<svg"], ["PNG", "\u0089PNG"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), saves.getByRole("button", { name: words, exact: true }).click()]);
    const bytes = readFileSync(await download.path(), "latin1");
    check(bytes.startsWith(begins) && bytes.length > 2000, `${words}: ${bytes.length} bytes, ${JSON.stringify(bytes.slice(0, 8))}`);
  }
}

async function timeline({ page, check }, file) {
  const canvas = page.locator("canvas[data-lanes]");
  if (await canvas.count() === 0) return;
  await canvas.scrollIntoViewIfNeeded();
  const took = async () => { await page.waitForTimeout(60); return Number(await canvas.getAttribute("data-ms")); };
  const colours = () => canvas.evaluate((of) => {
    const { data } = of.getContext("2d").getImageData(0, 0, of.width, of.height), seen = new Set();
    for (let at = 0; at < data.length; at += 64) seen.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    return seen.size;
  });
  check(await colours() > 4, "the timeline is empty");
  const frames = [];
  const figure = page.locator("figure:has(canvas)");
  for (const words of ["all", "zoom in", "zoom in", "later", "later", "zoom in", "zoom in", "earlier", "zoom out"]) {
    await figure.getByRole("button", { name: words, exact: true }).click();
    frames.push(await took());
  }
  const box = await canvas.boundingBox(), before = await canvas.screenshot();
  await canvas.focus();
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowRight");
  frames.push(await took());
  await page.mouse.move(box.x + 400, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 260, box.y + 60, { steps: 8 });
  frames.push(await took());
  await page.mouse.up();
  await page.mouse.wheel(0, -300);
  frames.push(await took());
  check(!before.equals(await canvas.screenshot()), "the timeline does not move");
  check(await colours() > 4, "the timeline is empty after it was moved");
  frames.sort((one, other) => one - other);
  console.error(`${basename(file)}: a frame of the timeline takes ${frames[frames.length >> 1]} ms, ${frames.at(-1)} ms at most`);
  // A second would be a fault and no slow machine.
  check(frames.at(-1) < 1000, `a frame takes ${frames.at(-1)} ms`);
}

for (const file of files) {
  const light = await opened(file, { colorScheme: "light", permissions: ["clipboard-read", "clipboard-write"] });
  await figures(light);
  await copies(light);
  await timeline(light, file);
  await accessible(light, "light");
  await light.shot("light");
  const pdf = await light.page.pdf({ format: "A4", path: join(folder, `${basename(file, ".html")}.pdf`), margin: { top: "14mm", bottom: "14mm", left: "14mm", right: "14mm" } });
  light.check(pdf.length > 10_000, `printed, it has ${pdf.length} bytes`);
  await light.page.emulateMedia({ media: "print" });
  light.check(!await light.page.locator(".tools").first().isVisible(), "printed, it has buttons");
  const ground = (at) => at.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await opened(file, { colorScheme: "dark" });
  light.check(await ground(light) !== await ground(dark), "dark is as light as light");
  await accessible(dark, "dark");
  await dark.shot("dark");
  const phone = await opened(file, { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 });
  const wide = await phone.page.evaluate(() => document.documentElement.scrollWidth);
  phone.check(wide <= 360, `on a phone it is ${wide} px wide`);
  await accessible(phone, "phone");
  await phone.shot("phone");
  for (const { context } of [light, dark, phone]) await context.close();
}
await browser.close();
process.exit(wrong ? 1 : 0);
