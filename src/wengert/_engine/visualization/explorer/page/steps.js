// Steps: moving through the graphs of a history, with a summary of each step.

function fillSteps(app) {
  const bar = document.getElementById("steps");
  bar.hidden = BOOK.steps.length < 2;
  if (bar.hidden) return;
  const { step, n } = app.model;
  const row = BOOK.steps[step];
  const before = step ? BOOK.steps[step - 1].lines.length : n;
  const done = row.before ? row.before.filter((was) => was < 0).length : 0;
  const marks = [...app.model.marks.values()];
  const gone = marks.filter((mark) => mark === "gone").length;
  const words = [`${step ? `${before} → ` : ""}${n} lines`];
  if (done) words.push(`${done} new (+)`);
  if (row.rewired && row.rewired.length) words.push(`${row.rewired.length} with other operands (≠)`);
  if (gone) words.push(`${gone} to go next (−)`);
  document.getElementById("step-title").textContent = `${step + 1}/${BOOK.steps.length}  ${row.title}`;
  document.getElementById("step-words").textContent = words.join(" · ");
  document.getElementById("step-note").textContent = row.note;
  document.getElementById("step-back").disabled = step === 0;
  document.getElementById("step-on").disabled = step === BOOK.steps.length - 1;
  const slider = document.getElementById("step-slider");
  slider.max = BOOK.steps.length - 1;
  slider.value = step;
  slider.setAttribute("aria-valuetext", `${row.title}: ${words.join(", ")}`);
}

// The box of the new step that corresponds to the selected box of the old one.
function carried(from, to, box) {
  if (box < 0) return -1;
  if (isGroup(from, box)) {
    const same = to.groups.find((g) => g.path === groupOf(from, box).path);
    return same ? to.n + same.number : -1;
  }
  if (to.place.has(from.pool[box])) return to.place.get(from.pool[box]);
  let line = box;
  for (let s = from.step; s < to.step && line >= 0; s++) line = BOOK.steps[s + 1].before.indexOf(line);
  for (let s = from.step; s > to.step && line >= 0; s--) line = BOOK.steps[s].before[line];
  return line;
}
