// One page at a time, the others hidden: laying out the whole book again and again would take minutes.
// Formulas that are wider than the page are set smaller, as far as they must.
const set = async part => {
  part.classList.add('current');
  await MathJax.typesetPromise([part]);
  for (const formula of part.querySelectorAll('mjx-container')) {
    const room = formula.closest('td, th, li, dd, blockquote, p, div').clientWidth;
    const inner = formula.querySelector('mjx-math');
    const width = inner ? inner.getBoundingClientRect().width : 0;
    if (room > 0 && width > room) formula.style.fontSize = `${Math.max(45, Math.floor(98 * room / width))}%`;
  }
  const edge = document.documentElement.clientWidth + 1;
  const cut = [...part.querySelectorAll('table, pre, img, mjx-math')]
    .filter(node => node.getBoundingClientRect().right > edge);
  const named = cut.map(node => `${part.id}: ${node.tagName}: ${node.textContent.trim().slice(0, 60)}`);
  part.classList.remove('current');
  return named;
};

// Formulas that are still source, or that MathJax could not set.
const unset = () => [...document.querySelectorAll('.math')]
  .filter(node => !node.querySelector('mjx-container') || node.querySelector('mjx-merror'))
  .map(node => node.textContent.slice(0, 80));
