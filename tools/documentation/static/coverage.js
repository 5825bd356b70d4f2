// A field above the tables of the page of coverage, which shows the rows that contain its words.
document.addEventListener("DOMContentLoaded", () => {
  const title = document.querySelector("#coverage > h1");
  if (!title) return;
  const tables = [...document.querySelectorAll("#coverage table")].slice(1);
  const field = document.createElement("input");
  field.type = "search";
  field.id = "coverage-filter";
  field.placeholder = "Show functions that contain ...";
  field.setAttribute("aria-label", "Show functions that contain");
  const count = document.createElement("p");
  count.id = "coverage-count";
  title.after(field, count);
  const rows = tables.flatMap((table) =>
    [...table.tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase() })));
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      const visible = words.every((word) => text.includes(word));
      row.hidden = !visible;
      shown += visible;
    }
    for (const table of tables) {
      table.hidden = words.length > 0 && [...table.tBodies[0].rows].every((row) => row.hidden);
    }
    count.textContent = words.length ? `${shown} of ${rows.length} functions` : "";
  };
  field.addEventListener("input", show);
});
