// Draw: the visible part of the scene on the canvas, with the detail that is legible.
//
//   makeMeasure()                  widths of boxes, from the widths of their texts
//   drawScene(context, view)       groups from the outside in, then wires, then boxes
//
// `view` has scene, camera, model, theme, selection and emphasis.  Information is never in color
// only: outputs have a double frame, constants and discrete lines a dashed one, closed groups look
// like a stack of paper, and changes are marked with a sign.

const TITLE_FONT = "600 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";
const DETAIL_FONT = "11px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";
const SIGNS = { new: "+", rewired: "≠", gone: "−" };
const FAR = 0.22; // below this scale texts are not legible, and all wires are one path
const SPOTS = 0.06; // below this scale boxes are colored spots, drawn together

function makeMeasure() {
  const context = document.createElement("canvas").getContext("2d");
  const known = new Map();
  const width = (font, text) => {
    const key = font + text;
    if (!known.has(key)) {
      context.font = font;
      known.set(key, context.measureText(text).width);
    }
    return known.get(key);
  };
  const measure = (model, tree, box) => {
    const closed = isGroup(model, box);
    const group = closed ? groupOf(model, box) : null;
    const title = shortened(closed ? group.name : titleOf(model, box, (k) => tree.isInlined(model, k)), 44);
    const detail = shortened(closed ? groupSummary(group) : detailOf(model, box), 52);
    const tone = closed ? `group ${group.kind}` : textOf("tone", model.pool[box]);
    const w = Math.max(width(TITLE_FONT, title) + (closed ? 22 : 0), width(DETAIL_FONT, detail)) + 24;
    return { w: Math.ceil(w), h: BOX_HEIGHT, title, detail, tone, group };
  };
  measure.label = (text) => width(TITLE_FONT, shortened(text, 60));
  return measure;
}

function shortened(text, limit) {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

// ---- colors ------------------------------------------------------------------------------------

function readTheme(forPrint) {
  const dark = !forPrint && window.matchMedia("(prefers-color-scheme: dark)").matches;
  const style = getComputedStyle(document.documentElement);
  const names = "ground ink faint wire frame group0 group1 closed accent into outof new gone rewired hit".split(" ");
  const theme = { dark, tones: PALETTES[dark ? "dark" : "light"] };
  for (const name of names) theme[name] = style.getPropertyValue(`--${name}`).trim();
  if (forPrint) Object.assign(theme, { ground: "#fff", ink: "#1d2329", group0: "#fff", group1: "#f4f6f8", closed: "#e4e9ef" });
  return theme;
}

function toneOf(theme, tone) { return theme.tones[tone] || theme.tones.other; }

// ---- all ---------------------------------------------------------------------------------------

function drawScene(context, view) {
  const { camera, scene, theme } = view;
  const ratio = view.ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, camera.width, camera.height);
  const k = camera.k * ratio;
  context.setTransform(k, 0, 0, k, -camera.x * k, -camera.y * k);
  const [x0, y0] = camera.toDrawing(-20, -20);
  const [x1, y1] = camera.toDrawing(camera.width + 20, camera.height + 20);
  const near = scene.boxes.filter((b) => b.x < x1 && b.x + b.w > x0 && b.y < y1 && b.y + b.h > y0);
  for (const box of near) if (box.open && box.group.parent >= 0) drawFrame(context, view, box);
  drawWires(context, view, { x0, y0, x1, y1 });
  if (camera.k < SPOTS && view.emphasis === null) drawSpots(context, view);
  else for (const box of near) if (!box.open) drawBox(context, view, box);
  for (const box of near) if (box.open && box.group.parent >= 0) drawFrameLabel(context, view, box);
  context.globalAlpha = 1;
}

function drawFrame(context, view, box) {
  const { theme } = view;
  context.globalAlpha = 1;
  context.fillStyle = box.depth % 2 ? theme.group1 : theme.group0;
  if (box.w * view.camera.k < 24 && view.selected !== box.id) {
    context.fillRect(box.x, box.y, box.w, box.h);
    return;
  }
  context.beginPath();
  context.roundRect(box.x, box.y, box.w, box.h, 10);
  context.fill();
  context.setLineDash(box.group.kind === "block" ? [5, 4] : []);
  context.lineWidth = view.selected === box.id ? 2.5 : box.group.kind === "level" ? 1.6 : 1;
  context.strokeStyle = view.selected === box.id ? theme.accent : theme.frame;
  context.stroke();
  context.setLineDash([]);
}

// The label of an open group keeps a legible size at small scales, if it fits.
function drawFrameLabel(context, view, box) {
  const { camera, theme } = view;
  const largest = camera.k < FAR ? HEADER * 3 : 26;
  const size = Math.max(13, Math.min(11 / camera.k, box.w / 9, largest));
  if (size * camera.k < 4.5 || box.w * camera.k < 24) return;
  const text = `− ${shortened(box.group.name, 60)}`;
  context.font = TITLE_FONT.replace("13px", `${size}px`);
  const [x, y] = [box.x + 9, box.y + Math.max(20, size * 1.15)];
  context.globalAlpha = 0.85; // above the wires that enter
  context.fillStyle = box.depth % 2 ? theme.group1 : theme.group0;
  const width = Math.min(box.w - 8, context.measureText(text).width + 8);
  context.fillRect(x - 4, y - size, width, size * 1.3);
  context.globalAlpha = 1;
  context.textAlign = "left";
  context.fillStyle = box.group.kind === "level" ? theme.ink : theme.faint;
  context.fillText(text, x, y, box.w - 16);
}

// ---- boxes -------------------------------------------------------------------------------------

function drawBox(context, view, box) {
  const { theme, camera } = view;
  const lit = view.emphasis === null || view.emphasis.has(box.id);
  context.globalAlpha = lit ? 1 : 0.22;
  const [fill, stroke, ink] = box.group
    ? [theme.closed, theme.faint, theme.ink] : toneOf(theme, box.tone);
  if (camera.k < SPOTS) {
    context.fillStyle = stroke;
    context.fillRect(box.x, box.y, box.w, box.h);
    return;
  }
  const radius = ["input", "variable", "constant"].includes(box.tone) ? box.h / 2 : box.group ? 8 : 5;
  if (box.group) drawStack(context, box, radius, fill, stroke);
  outline(context, box, radius);
  context.fillStyle = fill;
  context.fill();
  decorate(context, view, box, radius, stroke);
  if (camera.k >= FAR) drawWords(context, box, ink, camera.k);
}

function drawSpots(context, view) {
  const { scene, theme } = view;
  const colorOf = (box) => (box.group ? theme.faint : toneOf(theme, box.tone)[1]);
  if (!scene.spots || scene.spots.theme !== theme) {
    scene.spots = { theme, paths: new Map() };
    for (const box of scene.boxes) {
      if (box.open) continue;
      const color = colorOf(box);
      if (!scene.spots.paths.has(color)) scene.spots.paths.set(color, new Path2D());
      scene.spots.paths.get(color).rect(box.x, box.y, box.w, box.h);
    }
  }
  for (const [color, path] of scene.spots.paths) {
    context.fillStyle = color;
    context.fill(path);
  }
  const least = 5 / view.camera.k; // search results must be visible
  for (const id of [...view.hits, view.selected]) {
    const box = scene.byBox.get(id);
    if (!box || box.open) continue;
    context.fillStyle = id === view.selected ? theme.accent : theme.hit;
    const [w, h] = [Math.max(box.w, least), Math.max(box.h, least)];
    context.fillRect(box.x + (box.w - w) / 2, box.y + (box.h - h) / 2, w, h);
  }
}

function outline(context, box, radius, out = 0) {
  context.beginPath();
  context.roundRect(box.x - out, box.y - out, box.w + 2 * out, box.h + 2 * out, radius + out);
}

function drawStack(context, box, radius, fill, stroke) {
  for (const offset of [6, 3]) {
    context.beginPath();
    context.roundRect(box.x + offset, box.y + offset, box.w, box.h, radius);
    context.fillStyle = fill;
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = stroke;
    context.stroke();
  }
}

function decorate(context, view, box, radius, stroke) {
  const { theme, model } = view;
  const dashed = box.tone === "constant" || box.tone === "discrete";
  context.setLineDash(dashed ? [4, 3] : box.group && box.group.kind === "block" ? [6, 3] : []);
  context.lineWidth = 1.3;
  context.strokeStyle = stroke;
  context.stroke();
  context.setLineDash([]);
  if (!box.group && model.outputs.has(box.id)) {
    outline(context, box, radius, 3);
    context.lineWidth = 1.6;
    context.stroke();
  }
  const mark = box.group ? groupMark(model, box) : model.marks.get(box.id);
  if (mark) drawSign(context, box, SIGNS[mark], theme[mark], radius);
  if (model.effects.has(box.id)) drawSign(context, box, "!", theme.accent, radius);
  if (view.hits.has(box.id)) ring(context, box, radius, theme.hit, 3, 3);
  if (view.hover === box.id) ring(context, box, radius, theme.accent, 1.5, 2);
  if (view.selected === box.id) ring(context, box, radius, theme.accent, 3, 4);
}

function ring(context, box, radius, color, width, out) {
  outline(context, box, radius, out);
  context.lineWidth = width;
  context.strokeStyle = color;
  context.stroke();
}

// A closed group has the sign of the changes inside.
function groupMark(model, box) {
  if (!box.marks) {
    box.marks = new Set();
    const inside = (g) => { while (g > box.group.number) g = model.groups[g].parent; return g === box.group.number; };
    for (const [i, mark] of model.marks) if (inside(model.home[i])) box.marks.add(mark);
  }
  return ["gone", "new", "rewired"].find((mark) => box.marks.has(mark));
}

function drawSign(context, box, sign, color, radius) {
  ring(context, box, radius, color, 2.2, 0);
  context.beginPath();
  context.arc(box.x + box.w - 2, box.y + 2, 8, 0, 7);
  context.fillStyle = color;
  context.fill();
  context.fillStyle = "#fff";
  context.font = TITLE_FONT;
  context.textAlign = "center";
  context.fillText(sign, box.x + box.w - 2, box.y + 6.5);
}

function drawWords(context, box, ink, k) {
  const middle = box.x + box.w / 2;
  context.fillStyle = ink;
  context.textAlign = "center";
  // At small scales only the title, larger.
  const alone = k < 0.5;
  context.font = alone ? TITLE_FONT.replace("13px", "17px") : TITLE_FONT;
  context.fillText(box.group ? `+ ${box.title}` : box.title, middle, box.y + (alone ? 27 : 18), box.w - 8);
  if (alone) return;
  context.font = DETAIL_FONT;
  context.fillText(box.detail, middle, box.y + 33, box.w - 8);
}

// ---- wires -------------------------------------------------------------------------------------

function drawWires(context, view, { x0, y0, x1, y1 }) {
  const { scene, theme, camera } = view;
  const thin = Math.max(1.3, Math.min(0.7 / camera.k, 14));
  const quiet = view.emphasis === null && view.selected < 0;
  if (camera.k < FAR && quiet) {
    context.lineWidth = thin;
    context.strokeStyle = theme.wire;
    context.globalAlpha = camera.k < SPOTS ? 0.35 : 0.7;
    context.stroke(longWires(scene, 3 / camera.k));
    context.globalAlpha = 1;
    return;
  }
  const loud = [];
  for (const wire of scene.wires) {
    if (wire.x0 > x1 || wire.x1 < x0 || wire.y0 > y1 || wire.y1 < y0) continue;
    const color = wireColor(view, wire);
    if (color) loud.push([wire, color]);
    else drawWire(context, view, wire, theme.wire, thin, wireFades(view, wire) ? 0.15 : 1);
  }
  for (const [wire, color] of loud) drawWire(context, view, wire, color, Math.max(2.4, thin * 1.6), 1);
  context.globalAlpha = 1;
}

function wireColor(view, wire) {
  if (view.selected < 0) return null;
  for (const edge of wire.edges) {
    if (edge.v === view.selected) return view.theme.into;
    if (edge.u === view.selected) return view.theme.outof;
  }
  return null;
}

function wireFades(view, wire) {
  if (view.emphasis === null) return false;
  return !wire.edges.some((edge) => view.emphasis.has(edge.u) && view.emphasis.has(edge.v));
}

function drawWire(context, view, wire, color, width, alpha) {
  context.globalAlpha = alpha;
  context.strokeStyle = color;
  context.lineWidth = width * (wire.count > 1 ? Math.min(3, 1 + Math.log10(wire.count)) : 1);
  context.setLineDash(wire.dashed ? [6, 4] : []);
  wire.path = wire.path || pathOf(new Path2D(), wire.points);
  context.stroke(wire.path);
  context.setLineDash([]);
  if (wire.head && view.camera.k > 0.12) drawHead(context, wire, color);
}

function drawHead(context, wire, color) {
  const [before, { x, y }] = wire.points.slice(-2);
  const sideways = wire.update;
  const toLeft = sideways && before.x > x;
  context.beginPath();
  context.moveTo(x, y);
  if (sideways) {
    const d = toLeft ? 8 : -8;
    context.lineTo(x + d, y - 4);
    context.lineTo(x + d, y + 4);
  } else {
    context.lineTo(x - 4, y - 8);
    context.lineTo(x + 4, y - 8);
  }
  context.fillStyle = color;
  context.fill();
}

// The wires longer than a limit in one path, cached for each power of two.
function longWires(scene, length) {
  const size = Math.floor(Math.log2(length));
  scene.long = scene.long || new Map();
  if (!scene.long.has(size)) {
    const some = scene.wires.filter((w) => Math.max(w.x1 - w.x0, w.y1 - w.y0) >= 2 ** size);
    scene.long.set(size, together(some));
  }
  return scene.long.get(size);
}

function together(wires) {
  const path = new Path2D();
  for (const wire of wires) {
    const points = wire.points;
    path.moveTo(points[0].x, points[0].y);
    for (const p of points.slice(1)) path.lineTo(p.x, p.y);
  }
  return path;
}

// Curves are vertical at their ends; corners between straight segments are rounded.
function pathOf(path, points) {
  let [x, y] = [points[0].x, points[0].y];
  path.moveTo(x, y);
  for (let k = 1; k < points.length; k++) {
    const p = points[k];
    const next = points[k + 1];
    if (!p.l) {
      const bend = Math.min(Math.abs(p.y - y) / 2, 90);
      path.bezierCurveTo(x, y + bend, p.x, p.y - bend, p.x, p.y);
    } else if (next && next.l && (p.x - x) * (next.y - p.y) - (p.y - y) * (next.x - p.x) !== 0) {
      path.arcTo(p.x, p.y, next.x, next.y, 7);
    } else path.lineTo(p.x, p.y);
    [x, y] = [p.x, p.y];
  }
  return path;
}
