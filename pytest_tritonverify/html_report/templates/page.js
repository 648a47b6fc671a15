"use strict";

// What is shown and in which order stands in the address, behind the #: so it can be linked to.
(() => {
  const root = document.documentElement;
  const list = document.getElementById("pairs");
  const pairs = [...list.children];
  const controls = document.getElementById("controls");
  const shown = document.getElementById("shown");
  const DEFAULTS = { status: "all", sort: "verdict", q: "", theme: "system" };

  const figure = (pair, name, missing) => {
    const value = pair.dataset[name];
    return value === "" || value === undefined ? missing : Number(value);
  };
  const up = (name, missing) => (a, b) => figure(a, name, missing) - figure(b, name, missing);
  const down = (name, missing) => (a, b) => figure(b, name, missing) - figure(a, name, missing);
  const ORDERS = {
    verdict: up("order", 0),
    name: (a, b) => a.dataset.name.localeCompare(b.dataset.name),
    speedup: down("speedup", -1),
    slowdown: up("speedup", Infinity),
    seconds: down("seconds", -1),
    warnings: down("warnings", -1),
  };
  const KEPT = {
    all: () => true,
    failed: (pair) => pair.dataset.status === "failed",
    passed: (pair) => pair.dataset.status === "passed",
    warned: (pair) => pair.dataset.warnings !== "0",
    measured: (pair) => pair.dataset.speedup !== "",
  };

  let state = DEFAULTS;

  const read = () => {
    const words = location.hash.slice(1);
    if (words !== "" && !words.includes("=")) {
      // The name of a place on the page: nothing else changes.
      return;
    }
    const given = new URLSearchParams(words);
    state = { ...DEFAULTS };
    for (const name of Object.keys(state)) {
      state[name] = given.get(name) ?? state[name];
    }
    state.status = Object.hasOwn(KEPT, state.status) ? state.status : DEFAULTS.status;
    state.sort = Object.hasOwn(ORDERS, state.sort) ? state.sort : DEFAULTS.sort;
  };

  const write = (changes) => {
    const wanted = { ...state, ...changes };
    const words = new URLSearchParams({ status: wanted.status, sort: wanted.sort });
    for (const name of ["q", "theme"]) {
      if (wanted[name] !== DEFAULTS[name]) {
        words.set(name, wanted[name]);
      }
    }
    location.replace(`#${words}`);
  };

  const reveal = (id) => {
    const pair = /^p\d+$/.test(id) ? document.getElementById(id) : null;
    if (pair) {
      pair.hidden = false;
      pair.querySelector("details").open = true;
      pair.scrollIntoView({ block: "start" });
    }
  };

  const apply = () => {
    read();
    const wanted = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const pair of pairs) {
      const words = pair.dataset.words;
      const keep = KEPT[state.status](pair) && wanted.every((word) => words.includes(word));
      pair.hidden = !keep;
      count += keep;
    }
    // Sorting is stable: what is equal stays as the page has it.
    list.append(...[...pairs].sort(ORDERS[state.sort]));
    shown.textContent = `${count} of ${pairs.length} pairs`;
    document.getElementById("none").hidden = count > 0 || pairs.length === 0;
    for (const [name, value] of Object.entries(state)) {
      const control = controls.elements[name];
      if (control.value !== value) {
        control.value = value;
      }
    }
    if (state.theme === "light" || state.theme === "dark") {
      root.dataset.theme = state.theme;
    } else {
      delete root.dataset.theme;
    }
    reveal(location.hash.slice(1));
  };

  controls.hidden = false;
  controls.addEventListener("input", (event) => {
    write({ [event.target.name]: event.target.value });
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-pair], [data-search], [data-unfold]");
    if (target === null) {
      return;
    }
    const { pair, search, unfold } = target.dataset;
    if (pair !== undefined) {
      reveal(`p${pair}`);
    } else if (search !== undefined) {
      write({ q: search, status: "all" });
      controls.scrollIntoView({ block: "start" });
    } else {
      for (const one of pairs) {
        if (!one.hidden) {
          one.querySelector("details").open = unfold === "yes";
        }
      }
    }
  });
  addEventListener("hashchange", apply);
  addEventListener("load", () => {
    root.dataset.loadedMs = Math.round(performance.now());
  });
  apply();
})();
