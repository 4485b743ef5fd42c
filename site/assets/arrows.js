// Arrows go from cell to cell of a grid, by the link of a cell where it has one.
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const told = (cell) => !cell.hidden && !cell.matches(".barcell, .spacer");

// `next` gives the row so many rows on; nothing where there is none. Of a grid that draws only what is in sight it has brought it there.
export function arrows(grid, next, isDrawnInSight = false) {
  grid.addEventListener("keydown", (event) => {
    const [down, right] = STEPS[event.key] ?? [], cell = event.target.closest?.("tbody :is(th, td)");
    if (down === undefined || !cell || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const from = [...cell.parentElement.cells].filter(told).indexOf(cell), row = down ? next(cell.parentElement, down) : cell.parentElement;
    const cells = [...(row?.cells ?? [])].filter(told), to = cells[Math.min(from, cells.length - 1) + right];
    if (!to) return;
    event.preventDefault(); // the page stays where it is
    const inner = to.querySelector("a") ?? to;
    if (inner === to) to.tabIndex = -1;
    inner.focus({ preventScroll: isDrawnInSight && down !== 0 }); // rows that move would change under it
  });
}
