// What scripts add to the pages: a palette of names, copying, sorting and filtering of tables, keys, and
// parts that refresh. Every page works without them.

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// load returns the document at an address.
const load = async (address, signal) => {
  const answer = await fetch(address, { signal, headers: { Accept: "text/html" } });
  if (answer.redirected || !answer.ok) return null;
  return new DOMParser().parseFromString(await answer.text(), "text/html");
};

// --- Copying.

const addCopying = (root) => {
  if (!navigator.clipboard) return; // the address is neither https nor this machine
  for (const code of root.querySelectorAll("[data-copy]")) {
    const button = make("button", { type: "button", class: "copy", "aria-label": "Copy" }, "copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1200);
    });
    code.after(button);
  }
};

// --- Secrets: a page that the browser keeps for the way back has none.

addEventListener("pagehide", () => {
  for (const each of document.querySelectorAll("[data-once]")) {
    each.replaceWith(make("p", { class: "warning" }, "This secret was shown once. Make another key."));
  }
});

// --- Tables: a click on a heading sorts; long tables get a field that filters.

const filterFrom = 12; // rows

const orderOf = (row, index) => {
  const cell = row.cells[index];
  return cell ? cell.dataset.order ?? cell.textContent.trim() : "";
};

const compare = (a, b) => {
  const [x, y] = [Number(a), Number(b)];
  return a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y) ? x - y : a.localeCompare(b);
};

const sortBy = (table, index) => {
  const heading = table.tHead.rows[0].cells[index];
  const falls = heading.getAttribute("aria-sort") === "ascending";
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => compare(orderOf(a, index), orderOf(b, index)));
  if (falls) rows.reverse();
  body.append(...rows);
};

const addSorting = (root) => {
  for (const table of root.querySelectorAll("table[data-grid]")) {
    [...table.tHead.rows[0].cells].forEach((heading, index) => {
      if (heading.classList.contains("next")) return; // the column of actions
      const button = make("button", { type: "button" }, ...heading.childNodes);
      button.addEventListener("click", () => sortBy(table, index));
      heading.append(button);
    });
    if (table.tBodies[0].rows.length < filterFrom || table.closest("[data-poll]")) continue;
    const field = make("input", { type: "search", placeholder: "Filter the rows shown", "aria-label": "Filter the rows shown" });
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    table.closest(".scroll").before(make("div", { class: "tools" }, field));
  }
};

// --- The palette: names, found while the visitor types.

const openDialog = (...children) => {
  const dialog = make("dialog", {}, ...children);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
};

const moveIn = (items, step) => {
  const at = items.findIndex((item) => item.classList.contains("at"));
  items[at]?.classList.remove("at");
  const next = items[Math.max(0, Math.min(items.length - 1, at + step))];
  next?.classList.add("at");
  next?.scrollIntoView({ block: "nearest" });
};

const openPalette = () => {
  if (document.querySelector("dialog")) return;
  const field = make("input", { type: "search", placeholder: "A part of a name", "aria-label": "Search names", autocomplete: "off" });
  let found = make("div", { id: "found", "aria-live": "polite" });
  const dialog = openDialog(field, found);
  let running = new AbortController();
  field.addEventListener("input", async () => {
    running.abort();
    running = new AbortController();
    try {
      const page = await load(`/console/search?q=${encodeURIComponent(field.value)}`, running.signal);
      const next = page?.getElementById("found");
      if (!next) return;
      next.setAttribute("aria-live", "polite");
      found.replaceWith(next);
      found = next;
      found.querySelector("li")?.classList.add("at");
    } catch (failure) {
      if (failure.name !== "AbortError") throw failure;
    }
  });
  field.addEventListener("keydown", (event) => {
    const items = [...found.querySelectorAll("li")];
    if (event.key === "ArrowDown") moveIn(items, 1);
    else if (event.key === "ArrowUp") moveIn(items, -1);
    else if (event.key === "Enter") (items.find((item) => item.classList.contains("at")) ?? items[0])?.querySelector("a")?.click();
    else if (event.key === "Escape") dialog.close();
    else return;
    event.preventDefault();
  });
  field.focus();
};

// --- Keys.

const places = { o: "/console", b: "/console/warehouses", c: "/console/changes" };

const openHelp = () => {
  if (document.querySelector("dialog")) return;
  const keys = [
    ["/", "search names"], ["j  k", "the next row, the row before"], ["Enter", "open the row"],
    ["g o", "overview"], ["g b", "browse"], ["g c", "changes"], ["t", "light or dark"], ["?", "this help"],
  ];
  const list = make("dl");
  for (const [key, what] of keys) list.append(make("dt", {}, make("kbd", {}, key)), make("dd", {}, what));
  openDialog(make("h2", {}, "Keys"), list);
};

let isGoing = false;

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...document.querySelectorAll("main tbody tr, main .hits li")].filter((row) => !row.hidden);
  if (isGoing && places[event.key]) location.href = places[event.key];
  else if (event.key === "/") openPalette();
  else if (event.key === "?") openHelp();
  else if (event.key === "j") moveIn(rows, 1);
  else if (event.key === "k") moveIn(rows, -1);
  else if (event.key === "t") document.querySelector(".theme button")?.click();
  else if (event.key === "Enter") document.querySelector("main .at a")?.click();
  isGoing = event.key === "g";
  if ("/?".includes(event.key)) event.preventDefault();
});

// --- The switch of the theme: without a choice it leaves the theme that the browser prefers.

const button = document.querySelector(".theme button");
if (button && !document.documentElement.dataset.theme) {
  button.value = matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark";
}

// --- Parts that refresh: their page is loaded again, or the address that has only them, and the part with the same id is
// taken from it.

const refresh = async (part) => {
  if (document.hidden || document.querySelector("dialog")) return;
  const page = await load(part.dataset.from ?? location.href).catch(() => null);
  const next = page?.getElementById(part.id);
  if (!next || next.innerHTML === part.dataset.last) return;
  part.dataset.last = next.innerHTML;
  const focus = document.activeElement;
  if (part.contains(focus) && focus !== document.body) return; // a visitor is using it
  part.replaceChildren(...next.childNodes);
  add(part);
};

const add = (root) => {
  addCopying(root);
  addSorting(root);
};

// --- Parts that take longer: another page has them.

const complete = async (part) => {
  const page = await load(part.dataset.load).catch(() => null);
  const next = page?.getElementById(part.id);
  if (!next) return;
  part.replaceWith(next);
  add(next);
};

add(document);
const focused = document.querySelector("main input[autofocus]");
focused?.setSelectionRange(focused.value.length, focused.value.length);
for (const part of document.querySelectorAll("[data-load]")) complete(part);
for (const part of document.querySelectorAll("[data-poll]")) {
  setInterval(refresh, Number(part.dataset.poll) * 1000, part);
}
