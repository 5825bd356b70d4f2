// Search: lines whose name, operation, scope, spec, parameters or source line contain the words.
//
//   findLines(model, "layer1 tanh")   every word must occur; "%12" is the line itself, and
//                                     "op:tanh" searches the operation only, "at:" the source

const PARTS = {
  op: (p) => opOf(p).name, name: (p) => textOf("name", p), scope: (p) => textOf("scope", p),
  kind: (p) => textOf("kind", p),
  at: (p) => { const place = placeOf(p); return place ? `${place.file}:${place.line} ${place.text}` : ""; },
};

function haystack(model, i) {
  const p = model.pool[i];
  const place = placeOf(p);
  const words = [
    opOf(p).name, textOf("name", p), textOf("scope", p), textOf("spec", p), textOf("params", p),
    textOf("meta", p), textOf("kind", p), levelOf(p) ? levelName(levelOf(p)) : "",
  ];
  if (place) words.push(`${place.file}:${place.line}`, place.within, place.text);
  return words.join(" ").toLowerCase();
}

function findLines(model, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const number = /^%(\d+)$/.exec(query.trim());
  if (number) return Number(number[1]) < model.n ? [Number(number[1])] : [];
  const parts = words.map((word) => /^(op|name|scope|kind|at):(.+)$/.exec(word));
  if (!model.haystacks) model.haystacks = model.pool.map((_, i) => haystack(model, i));
  const found = [];
  const holds = (i, k) => (parts[k]
    ? PARTS[parts[k][1]](model.pool[i]).toLowerCase().includes(parts[k][2]) : model.haystacks[i].includes(words[k]));
  for (let i = 0; i < model.n; i++) if (words.every((_, k) => holds(i, k))) found.push(i);
  return found;
}

// All lines that a line depends on, or that depend on it.
function reach(next, start) {
  const seen = new Set([start]);
  const stack = [start];
  while (stack.length) {
    for (const k of next[stack.pop()]) {
      if (!seen.has(k)) {
        seen.add(k);
        stack.push(k);
      }
    }
  }
  seen.delete(start);
  return seen;
}
