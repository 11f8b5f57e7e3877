async (cases) => {
  const form = document.getElementById("calculator"), part = (name) => document.getElementById("calculator-" + name);
  const shown = [];
  for (const { fields, radios, address } of cases) {
    window.thrown = [];
    delete part("table").dataset.result;
    if (address !== null) {
      const moved = new Promise((done) => { addEventListener("hashchange", done, { once: true }); setTimeout(done, 50); });
      location.hash = address;
      await moved;
    }
    for (const [name, value] of Object.entries(radios)) for (const button of form.elements[name]) button.checked = button.value === value;
    for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
    form.dispatchEvent(new Event("submit", { cancelable: true }));
    while (form.getAttribute("aria-busy") !== "false") await new Promise((done) => setTimeout(done, 5));
    const state = {};
    for (const input of form.querySelectorAll(".calculator-field input")) {
      const hidden = input.closest(".calculator-field").hidden;
      const error = part(input.name + "-error").textContent, marked = input.getAttribute("aria-invalid") === "true";
      state[input.name] = { text: input.value, hidden, error, marked };
    }
    const texts = (table) => [...part(table).tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const scheme = form.elements.scheme.value;
    shown.push({ state, scheme, rows: texts("table"), schemes: texts("schemes"), answer: part("answer").textContent, python: part("python").textContent,
      result: part("table").dataset.result || null, thrown: window.thrown });
  }
  return shown;
}
