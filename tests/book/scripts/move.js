([figure, values]) => [...document.querySelectorAll(`#${figure} .moving input`)].forEach((input, place) => {
  for (let low = 0, high = Number(input.max); low <= high;) {
    input.value = (low + high) >> 1;
    input.dispatchEvent(new Event("input", {bubbles: true}));
    const missing = values[place] - Number(input.getAttribute("aria-valuetext").split("= ")[1]);
    if (missing === 0) return;
    if (missing > 0) low = Number(input.value) + 1; else high = Number(input.value) - 1;
  }
  throw new Error(`no position ${values[place]}`);
})
