// What has the focus: at which step it had it before (or -1), whether it is in the content, whether that is seen, and what it is.
(number) => {
  const node = document.activeElement, card = node.closest(".sd-card"), visited = (window.visited ??= new Map());
  const marked = (one) => {
    const style = getComputedStyle(one);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  };
  const before = visited.get(node) ?? -1;
  if (before < 0) visited.set(node, number);
  return [before, node.closest("main") !== null, marked(node) || (card !== null && marked(card)), node.outerHTML.slice(0, 100)];
}
