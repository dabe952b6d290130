// What a file that is looked at can do and a printed one cannot: values under the pointer, series left out, another scale, copies, a
// timeline that zooms. Nothing is fetched, and nothing is stored. Text from the page is only ever set as text.
"use strict";
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const make = (name, fields = {}, ...children) => {
    const element = Object.assign(document.createElement(name), fields);
    element.append(...children);
    return element;
  };
  const tip = document.getElementById("tip"), said = document.getElementById("said");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // A head, and lines of [class of a colour, name, value].
  function show(head, lines, x, y) {
    tip.replaceChildren(make("b", { textContent: head }), ...lines.map(([hue, name, value]) =>
      make("div", {}, make("i", { className: hue }), make("span", { textContent: name }), make("span", { textContent: value }))));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect(), edge = document.documentElement.clientWidth;
    const left = x + 14 + width > edge ? Math.max(4, x - width - 14) : x + 14;
    tip.style.left = `${Math.max(4, Math.min(left, edge - width - 4)) + scrollX}px`;
    tip.style.top = `${Math.max(4, y - height - 10) + scrollY}px`;
  }
  const hide = () => { tip.hidden = true; all(".mark.on").forEach((mark) => mark.classList.remove("on")); };

  // Marks say the same on the other scale, in other places; each knows its series, and where it is across.
  for (const other of all("[data-places]")) {
    const marks = all(".mark", other.parentElement), places = other.dataset.places.split(" "), over = [...other.querySelector("svg").children].filter((part) => part.matches("g"))[1];
    over.prepend(...marks.map((mark, nth) => { const copy = mark.cloneNode(true); copy.setAttribute("d", mark.getAttribute("d").replace(/^M[^mM]*/, `M${places[nth]}`)); return copy; }));
  }
  all(".mark").forEach((mark) => Object.assign(mark.dataset, { k: mark.getAttribute("class").match(/\bk(\d+)/)[1], x: mark.getAttribute("d").match(/M([^,]+)/)[1] }));

  // Marks of a plot that are seen: of the scale that is shown, and of series that are not left out.
  const marks = (plot, off = plot.closest("figure").dataset.off?.split(" ") ?? []) => all("[data-scale]:not([hidden]) .mark", plot).filter((mark) => !off.includes(mark.dataset.k));
  // What is pointed at together: all series at a place of an axis, or one mark.
  function groups(plot) {
    if (!plot.closest(".lines")) return marks(plot).map((mark) => [mark]);
    return [...Map.groupBy(marks(plot), (mark) => mark.dataset.x).values()].sort((one, other) => one[0].dataset.x - other[0].dataset.x);
  }
  function point(group, x, y) {
    hide();
    group.forEach((mark) => mark.classList.add("on"));
    const hue = (mark) => [...mark.classList].find((name) => /^s\d+$/.test(name)), name = (mark) => mark.dataset.n ?? mark.closest("figure").querySelector(`.legend [data-k="${mark.dataset.k}"]`).textContent;
    const lines = group.map((mark) => [hue(mark), name(mark), mark.dataset.v]), { p } = group[0].dataset;
    show(p, lines, x, y);
    return [p, ...lines.map(([, name, value]) => `${name} ${value}`)].join(", ");
  }
  const centre = (mark) => { const place = mark.getBoundingClientRect(); return [place.x + place.width / 2, place.y + place.height / 2]; };
  for (const plot of all(".plot[role=group]")) {
    plot.addEventListener("pointermove", (event) => {
      const by = plot.closest(".lines")
        ? (group) => Math.abs(centre(group[0])[0] - event.clientX)
        : ([mark]) => mark === event.target ? -1 : Math.hypot(centre(mark)[0] - event.clientX, centre(mark)[1] - event.clientY);
      const nearest = groups(plot).map((group) => [by(group), group]).sort(([one], [other]) => one - other)[0];
      if (nearest && nearest[0] < 90) point(nearest[1], event.clientX, event.clientY); else hide();
    });
    ["pointerleave", "blur"].forEach((name) => plot.addEventListener(name, hide));
    let at = -1;
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key], of = groups(plot);
      if (event.key === "Escape") hide();
      if (!step || !of.length) return;
      event.preventDefault();
      at = at < 0 && step < 0 ? of.length - 1 : (at + step + of.length) % of.length;
      said.textContent = point(of[at], ...centre(of[at][0]));
    });
  }

  for (const button of all(".legend button")) button.addEventListener("click", () => {
    const figure = button.closest("figure"), off = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!off));
    figure.dataset.off = all("[aria-pressed=false]", figure).map((other) => other.dataset.k).join(" ");
    all(`.k${button.dataset.k}`, figure).forEach((part) => { part.style.display = off ? "none" : ""; });
  });

  // Copies: the table as CSV, the picture as SVG and PNG. A cell that a spreadsheet would run as a formula stays text.
  function csv(figure) {
    const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const plain = (text) => /^[=+@\t]|^-(?![\d.]+$)/.test(text) ? `'${text}` : text;
    return all("tr", figure).map((row) => all("th,td", row).map((cell) => quoted(cell.dataset.v ?? plain(cell.textContent))).join(",")).join("\r\n") + "\r\n";
  }
  async function copy(text) {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = document.body.appendChild(make("textarea", { value: text }));
      area.select(); document.execCommand("copy"); area.remove();
    }
  }
  function file(name, blob) {
    const href = URL.createObjectURL(blob);
    make("a", { download: name, href }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  }
  // The picture with the style that it has on the page, so that it stands alone.
  function picture(figure) {
    const svg = figure.querySelector("[data-scale]:not([hidden]) svg, svg.drawing").cloneNode(true);
    const { width, height } = svg.viewBox.baseVal;
    const names = ["ground", "ink", "muted", "rule", "axis", ..."01234567".split("").map((n) => `h${n}`), ..."0123456".split("").map((n) => `p${n}`)];
    const values = names.map((name) => `--${name}:${style(`--${name}`)}`).join(";");
    const space = "http://www.w3.org/2000/svg", rules = document.createElementNS(space, "style"), ground = document.createElementNS(space, "rect");
    rules.textContent = `svg{${values}}${all("style.ink").map((part) => part.textContent).join("")}`;
    Object.entries({ width: "100%", height: "100%", style: `fill:${style("--ground")}` }).forEach(([key, value]) => ground.setAttribute(key, value));
    svg.prepend(rules, ground);
    Object.entries({ xmlns: space, width, height }).forEach(([key, value]) => svg.setAttribute(key, value));
    return { text: new XMLSerializer().serializeToString(svg), width, height };
  }
  async function png(figure) {
    const canvas = figure.querySelector("canvas");
    if (canvas) return new Promise((done) => canvas.toBlob(done));
    const { text, width, height } = picture(figure), image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const copy = make("canvas", { width: width * 2, height: height * 2 });
    copy.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
    return new Promise((done) => copy.toBlob(done));
  }
  const names = new Set(); // of files that are saved
  for (const figure of all("figure")) {
    const tools = make("div", { className: "tools" }), scales = all("[data-scale]", figure), title = figure.querySelector("h3").textContent;
    const plain = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "figure", name = names.has(plain) ? `${plain}-${figure.id}` : plain;
    names.add(name);
    const tool = (words, act) => {
      tools.append(make("button", { type: "button", textContent: words, title: `${words}: ${title}`, onclick: (event) => act(event.target) }));
    };
    if (scales.length > 1) tool(`${scales[1].dataset.scale} scale`, (button) => {
      scales.forEach((scale) => { scale.hidden = !scale.hidden; });
      button.textContent = `${scales.find((scale) => scale.hidden).dataset.scale} scale`;
    });
    tool("copy CSV", async (button) => {
      await copy(csv(figure));
      [button.textContent, said.textContent] = ["copied", "The table was copied."];
      setTimeout(() => { button.textContent = "copy CSV"; }, 1500);
    });
    if (figure.querySelector("svg")) tool("SVG", () => file(`${name}.svg`, new Blob([picture(figure).text], { type: "image/svg+xml" })));
    if (figure.querySelector("svg, canvas")) tool("PNG", async () => file(`${name}.png`, await png(figure)));
    figure.querySelector("details, .scroll")?.before(tools);
  }

  // The timeline: numbers in columns coded by Rice's code, of which what is in sight is drawn.
  const SIX = new Uint8Array(128);
  [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((sign, six) => { SIX[sign.charCodeAt(0)] = six; });
  function decoded([count, base, power, text]) {
    const numbers = new Float64Array(count);
    let at = 0;
    const bit = () => SIX[text.charCodeAt(at / 6 | 0)] >> 5 - at++ % 6 & 1, bits = (width) => { let sum = 0; while (width-- > 0) sum = sum * 2 + bit(); return sum; };
    for (let nth = 0; nth < count; nth++) {
      let ones = 0;
      while (ones < 24 && bit()) ones++;
      numbers[nth] = ones === 24 ? bits(40) - (2 ** 39 - 1) : base + ones * 2 ** power + bits(power);
    }
    return numbers;
  }
  // Beginnings and ends of commands and of what happened for them, in microseconds, and which of them lie beside each other.
  function panel({ hue, n, since, rest, shape, shapes }, unit) {
    const us = unit / 1000, free = [], began = new Float64Array(n), ended = new Float64Array(n), first = new Uint32Array(n + 1), slot = new Uint16Array(n);
    const [from, to, lane] = [[], [], []], [starts, ends, kinds] = [since, rest, shape].map(decoded);
    const forms = shapes.map(({ lanes, bars }) => ({ lanes, bars: bars.map((pair) => pair.map(decoded)), used: 0 }));
    let now = 0, longest = 0, last = 0;
    for (let nth = 0; nth < n; nth++) {
      const form = forms[kinds[nth]], turn = form.used++;
      let at = now += starts[nth];
      began[nth] = now * us;
      first[nth] = lane.length;
      form.bars.forEach(([gap, length], place) => { from.push((at += gap[turn]) * us); to.push((at += length[turn]) * us); lane.push(form.lanes[place]); });
      ended[nth] = (at + ends[nth]) * us;
      [longest, last] = [Math.max(longest, ended[nth] - began[nth]), Math.max(last, ended[nth])];
      const place = free.findIndex((end) => end <= began[nth]);
      slot[nth] = place < 0 ? free.length : place;
      free[slot[nth]] = ended[nth];
    }
    first[n] = lane.length;
    return { hue, n, began, ended, first, slot, from, to, lane, longest, last, slots: Math.max(1, free.length) };
  }
  const LEFT = 74, HEAD = 24, LANE = 18, FOOT = 30;
  function timeline(canvas) {
    const { unit, panels: coded } = JSON.parse(canvas.nextElementSibling.textContent);
    const lanes = canvas.dataset.lanes.split("\n"), names = canvas.dataset.panels.split("\n");
    const panels = coded.map((one) => panel(one, unit)), whole = Math.max(1, ...panels.map((one) => one.last));
    const live = (one) => Math.min(66, Math.max(LANE, one.slots * 6)), tall = (one) => HEAD + live(one) + lanes.length * LANE + 12;
    const height = panels.reduce((sum, one) => sum + tall(one), FOOT), context = canvas.getContext("2d"), view = { from: 0, to: Math.min(whole, Math.max(100, ...panels.map((one) => one.ended[Math.min(one.n, 8) - 1] ?? 0))) };
    let [width, asked, chosen] = [0, false, null];
    const ask = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };
    const x = (us) => LEFT + (us - view.from) * (width - LEFT) / (view.to - view.from), us = (px) => view.from + (px - LEFT) * (view.to - view.from) / (width - LEFT);
    function move(from, span) {
      const wide = Math.min(whole, Math.max(1, span)), begin = Math.min(Math.max(0, from), whole - wide);
      Object.assign(view, { from: begin, to: begin + wide });
      ask();
    }
    const zoom = (factor, middle = (view.from + view.to) / 2) => move(middle - (middle - view.from) * factor, (view.to - view.from) * factor);
    // The first command that may reach into what is seen, and the one behind the last.
    function seen(one) {
      const search = (value) => { let low = 0, high = one.n; while (low < high) { const half = low + high >> 1; if (one.began[half] < value) low = half + 1; else high = half; } return low; };
      return [search(view.from - one.longest), search(view.to)];
    }
    function draw() {
      const start = performance.now(), fine = devicePixelRatio || 1;
      [asked, width] = [false, canvas.clientWidth];
      canvas.style.height = `${height}px`;
      if (canvas.width !== Math.round(width * fine) || canvas.height !== Math.round(height * fine)) [canvas.width, canvas.height] = [width, height].map((side) => Math.round(side * fine));
      context.setTransform(fine, 0, 0, fine, 0, 0);
      Object.assign(context, { fillStyle: style("--ground") }).fillRect(0, 0, width, height);
      const [muted, ink, rule] = ["--muted", "--ink", "--rule"].map(style), font = getComputedStyle(document.body).fontFamily;
      const step = [1, 2, 5].flatMap((of) => [...Array(9)].map((_, power) => of * 10 ** (power - 1))).sort((one, other) => one - other).find((of) => x(view.from + of) - LEFT > 76) ?? whole;
      context.font = `11px ${font}`;
      for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
        Object.assign(context, { fillStyle: rule }).fillRect(Math.round(x(tick)), 6, 1, height - FOOT);
        Object.assign(context, { fillStyle: muted }).fillText(step >= 1000 ? `${+(tick / 1000).toFixed(3)} ms` : `${+tick.toFixed(1)} µs`, x(tick) - 8, height - 8);
      }
      let top = 0;
      panels.forEach((one, nth) => { paint(one, nth, top, muted, ink, rule, font); top += tall(one); });
      canvas.dataset.ms = (performance.now() - start).toFixed(2);
    }
    function paint(one, nth, top, muted, ink, rule, font) {
      const hue = style(`--h${one.hue % 8}`), [low, high] = seen(one), wide = Math.max(1, Math.ceil(width - LEFT)), dense = high - low > wide / 3;
      Object.assign(context, { textAlign: "right", font: `11px ${font}`, fillStyle: muted });
      ["under way", ...lanes].forEach((name, lane) => {
        const y = top + HEAD + (lane ? live(one) + (lane - 1) * LANE : 0), deep = lane ? LANE : live(one);
        Object.assign(context, { fillStyle: muted }).fillText(name, LEFT - 8, y + deep / 2 + 4);
        Object.assign(context, { fillStyle: rule }).fillRect(LEFT, y + deep - 1, width - LEFT, 1);
      });
      Object.assign(context, { textAlign: "left", font: `600 12px ${font}`, fillStyle: ink });
      context.fillText(`${names[nth]}  ·  ${high - low} commands in sight${dense ? ", share of time in use" : ""}`, LEFT, top + 17);
      context.save(); context.beginPath(); context.rect(LEFT, top, width - LEFT, tall(one)); context.clip();
      context.fillStyle = hue;
      if (dense) {
        const busy = [...Array(lanes.length + 1)].map(() => new Float32Array(wide + 1));
        const add = (row, from, to) => {
          const left = Math.max(0, x(from) - LEFT), right = Math.min(wide, x(to) - LEFT);
          for (let px = left | 0; px < right; px++) row[px] += Math.min(right, px + 1) - Math.max(left, px);
        };
        for (let command = low; command < high; command++) {
          add(busy[0], one.began[command], one.ended[command]);
          for (let bar = one.first[command]; bar < one.first[command + 1]; bar++) add(busy[one.lane[bar] + 1], one.from[bar], one.to[bar]);
        }
        busy.forEach((row, lane) => {
          const deep = (lane ? LANE : live(one)) - 3, base = top + HEAD + live(one) + lane * LANE - 1, most = lane ? 1 : one.slots;
          for (let px = 0; px < wide; px++) if (row[px] > 0) { const part = Math.max(1, deep * Math.min(1, row[px] / most)); context.fillRect(LEFT + px, base - part, 1, part); }
        });
      } else {
        const thin = (live(one) - 4) / one.slots;
        for (let command = low; command < high; command++) {
          const mine = chosen && chosen.one === one;
          context.globalAlpha = mine ? (chosen.command === command ? 1 : .22) : command % 2 ? .62 : 1;
          const put = (from, to, y, deep) => context.fillRect(x(from), y, Math.max(1, x(to) - x(from) - .5), deep);
          put(one.began[command], one.ended[command], top + HEAD + 1 + one.slot[command] * thin, Math.max(1, thin - 1));
          for (let bar = one.first[command]; bar < one.first[command + 1]; bar++) put(one.from[bar], one.to[bar], top + HEAD + live(one) + one.lane[bar] * LANE + 3, LANE - 7);
        }
      }
      context.restore();
    }
    function hit(px, y) {
      let top = 0;
      for (const [nth, one] of panels.entries()) {
        const row = y - top - HEAD, near = us(px + 3) - us(px), [low, high] = seen(one), at = us(px);
        top += tall(one);
        if (row < 0 || row > tall(one) - HEAD || high - low > width / 3) continue;
        const lane = Math.floor((row - live(one)) / LANE), slot = Math.floor((row - 1) / ((live(one) - 4) / one.slots));
        for (let command = high - 1; command >= low; command--) {
          const inside = (from, to) => at >= from - near && at <= to + near, bars = [...Array(one.first[command + 1] - one.first[command]).keys()].map((bar) => bar + one.first[command]);
          if (lane < 0 ? one.slot[command] === slot && inside(one.began[command], one.ended[command]) : bars.some((bar) => one.lane[bar] === lane && inside(one.from[bar], one.to[bar]))) return { one, command, bars, name: names[nth] };
        }
      }
      return null;
    }
    const spell = (value) => `${+value.toFixed(2)} µs`, held = new Map();
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); held.set(event.pointerId, event.offsetX); });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId), span = view.to - view.from;
      if (before !== undefined) {
        const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
        if (other === undefined) move(view.from - (event.offsetX - before) * span / (width - LEFT), span);
        else zoom(Math.abs(before - other) / Math.max(8, Math.abs(event.offsetX - other)), us(other));
        held.set(event.pointerId, event.offsetX);
        return hide();
      }
      const found = hit(event.offsetX, event.offsetY);
      if (found?.command !== chosen?.command || found?.one !== chosen?.one) { chosen = found; ask(); }
      if (!found) return hide();
      const { one, command, bars, name } = found, begin = one.began[command], hue = `s${one.hue % 8}`;
      show(`${name}, command ${command + 1}: ${spell(one.ended[command] - begin)}`, [[hue, "begins at", spell(begin)],
        ...bars.slice(0, 10).map((bar) => [hue, lanes[one.lane[bar]], `+${spell(one.from[bar] - begin)} for ${spell(one.to[bar] - one.from[bar])}`])], event.clientX, event.clientY);
    });
    ["pointerup", "pointercancel"].forEach((name) => canvas.addEventListener(name, (event) => held.delete(event.pointerId)));
    canvas.addEventListener("pointerleave", () => { chosen = null; hide(); ask(); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(view.from + event.deltaX * (view.to - view.from) / width, view.to - view.from);
      else zoom(Math.exp(Math.max(-80, Math.min(80, event.deltaY)) / 240), us(event.offsetX));
    }, { passive: false });
    const acts = { "+": () => zoom(.6), "-": () => zoom(1 / .6), Home: () => move(0, whole), ArrowLeft: () => move(view.from - (view.to - view.from) / 5, view.to - view.from), ArrowRight: () => move(view.from + (view.to - view.from) / 5, view.to - view.from) };
    canvas.addEventListener("keydown", (event) => { const act = acts[event.key === "=" ? "+" : event.key]; if (act) { event.preventDefault(); act(); said.textContent = `${spell(view.from)} to ${spell(view.to)}`; } });
    const tools = canvas.closest("figure").querySelector(".tools");
    [["zoom in", "+"], ["zoom out", "-"], ["earlier", "ArrowLeft"], ["later", "ArrowRight"], ["all", "Home"]].reverse().forEach(([words, key]) => tools.prepend(make("button", { type: "button", textContent: words, onclick: acts[key] })));
    new ResizeObserver(ask).observe(canvas);
    [matchMedia("(prefers-color-scheme: dark)"), matchMedia("print")].forEach((media) => media.addEventListener("change", draw));
    draw();
  }
  all("canvas[data-lanes]").forEach(timeline);
})();
