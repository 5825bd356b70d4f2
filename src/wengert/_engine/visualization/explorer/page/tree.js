// Tree: which boxes are visible.
//
// A line is visible as itself, or as the outermost closed group around it.  It is not visible if its
// level of derivative is hidden, or if it is a number that is shown inside its users.  Open groups
// are stored by path, so that they stay open from one step to the next.

const BUDGETS = [90, 60, 40, 25, 12, 1]; // numbers of boxes to try for the first view

class Tree {
  constructor() {
    this.open = new Set();
    this.hidden = new Set(); // levels
    this.constantsAsBoxes = false;
  }

  // Open groups from the outside in, up to a number of boxes; blocks of a group all or none.
  openSome(model, budget) {
    this.open = new Set([""]);
    let shown = model.groups[0].members.length;
    const queue = [model.groups[0]];
    while (queue.length) {
      const inside = queue.shift().members.filter((m) => m.group !== undefined).map((m) => model.groups[m.group]);
      const blocks = inside.filter((g) => g.kind === "block");
      for (const some of [blocks, ...inside.filter((g) => g.kind !== "block").map((g) => [g])]) {
        const more = some.reduce((sum, g) => sum + boxesIn(model, g) - 1, 0);
        if (shown + more > budget) continue;
        shown += more;
        for (const g of some) this.open.add(g.path);
        queue.push(...some);
      }
    }
  }

  openAll(model) { model.groups.forEach((g) => this.open.add(g.path)); }
  closeAll() { this.open = new Set([""]); }

  toggle(group) {
    if (group.parent < 0) return;
    if (!this.open.delete(group.path)) this.open.add(group.path);
  }

  // Open all groups around a line or a group.
  reveal(model, box) {
    let g = isGroup(model, box) ? model.groups[box - model.n].parent : model.home[box];
    for (; g >= 0; g = model.groups[g].parent) this.open.add(model.groups[g].path);
    if (!isGroup(model, box)) this.hidden.delete(levelOf(model.pool[box]));
  }

  isInlined(model, i) {
    return !this.constantsAsBoxes && inlineText(model.pool[i]) !== "";
  }

  isSeen(model, i) {
    return !this.hidden.has(levelOf(model.pool[i])) && !this.isInlined(model, i);
  }

  // The visible box of each line, or -1.
  boxes(model) {
    const outermost = model.groups.map(() => -1); // the outermost closed group, itself included
    for (const g of model.groups) {
      const above = g.parent < 0 ? -1 : outermost[g.parent];
      outermost[g.number] = above >= 0 ? above : this.open.has(g.path) ? -1 : g.number;
    }
    return model.pool.map((_, i) => {
      if (!this.isSeen(model, i)) return -1;
      const closed = outermost[model.home[i]];
      return closed < 0 ? i : model.n + closed;
    });
  }
}

function boxesIn(model, group) {
  return group.members.filter((m) => m.group !== undefined || !inlineText(model.pool[m.line])).length;
}

// Boxes are numbered, first the lines and then the groups.
function isGroup(model, box) { return box >= model.n; }
function groupOf(model, box) { return model.groups[box - model.n]; }
function containerOf(model, box) {
  return isGroup(model, box) ? groupOf(model, box).parent : model.home[box];
}
