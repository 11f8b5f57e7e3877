/* The theme's buttons for the whole screen and for printing, without handlers in attributes. */
document.addEventListener("click", function (event) {
  var button = event.target.closest("[data-action]");
  if (!button) return;
  if (button.dataset.action === "fullscreen") window.toggleFullScreen();
  if (button.dataset.action === "print") window.print();
});
