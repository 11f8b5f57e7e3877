// Asks axe-core about the colours of text in every style that is not known: what they are is told by colour, size, weight, ground, and
// for links what tells them from the text around them. Returns what is violated, the styles that were asked, and those that were judged;
// null where there is something to ask and axe-core is not loaded.
async ([known, rules]) => {
  const grounds = new Map([[null, ""]]), asked = new Map(), count = new Map();
  const ground = (node) => {
    if (!grounds.has(node)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(node);
      const own = `${backgroundColor} ${backgroundImage} ${opacity};`;
      grounds.set(node, ground(node.parentElement) + (own === "rgba(0, 0, 0, 0) none 1;" ? "" : own));
    }
    return grounds.get(node);
  };
  const style = (node) => {
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(node), link = node.closest("a");
    const beside = link ? [getComputedStyle(link).textDecorationLine, getComputedStyle(link.parentElement).color] : [];
    return [color, fontSize, fontWeight, textShadow, ...beside, ground(node)].join("|");
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Set(known);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || asked.has(node) || !node.checkVisibility({ visibilityProperty: true })) continue;
    const key = style(node), others = count.get(key) || 0;
    if (seen.has(key) || others === 3) continue;
    count.set(key, others + 1);
    asked.set(node, key);
  }
  if (!asked.size) return [[], [], []];
  if (!window.axe) return null;
  const options = { runOnly: rules, elementRef: true, preload: false };
  const { passes, violations } = await axe.run({ include: [...asked.keys()].map((node) => node.closest("a") || node) }, options);
  const judged = [...passes, ...violations].flatMap((rule) => rule.nodes.map((found) => asked.get(found.element)));
  const told = violations.map(({ impact, id, help, nodes }) => ({ impact, id, help, nodes: nodes.map(({ html }) => ({ html })) }));
  return [told, [...count.keys()], judged.filter(Boolean)];
}
