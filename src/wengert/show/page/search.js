// Search: lines whose name, operation, scope, spec, parameters or source line has the words.
//
//   findLines(model, "layer1 tanh")   every word has to occur; "%12" is the line itself

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
  if (!model.haystacks) model.haystacks = model.pool.map((_, i) => haystack(model, i));
  const found = [];
  model.haystacks.forEach((text, i) => { if (words.every((word) => text.includes(word))) found.push(i); });
  return found;
}

// All lines that a line needs, or all that need it.
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
