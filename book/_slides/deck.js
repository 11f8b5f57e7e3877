// One slide at a time: arrows, Page Up and Down, Home, End, the buttons, or the number in the address (#slide-3).
(function () {
  "use strict";
  const slides = Array.from(document.querySelectorAll(".slide"));
  const pager = document.querySelector(".pager");
  const [back, on] = pager.querySelectorAll("button");
  const count = pager.querySelector("span");
  let shown = 0;

  // The text of a slide shrinks until it fits, to 60 percent at least; what is longer can be scrolled.
  function fit(slide) {
    for (let size = 100; size >= 60; size -= 5) {
      slide.style.fontSize = size + "%";
      if (slide.scrollHeight <= slide.clientHeight) return;
    }
  }

  function show(number) {
    shown = Math.min(Math.max(number, 0), slides.length - 1);
    slides.forEach((slide, place) => slide.classList.toggle("shown", place === shown));
    back.disabled = shown === 0;
    on.disabled = shown === slides.length - 1;
    count.textContent = shown + 1 + " / " + slides.length;
    history.replaceState(null, "", "#" + slides[shown].id);
    fit(slides[shown]);
  }

  function fromAddress() {
    const place = slides.findIndex((slide) => "#" + slide.id === location.hash);
    show(place < 0 ? 0 : place);
  }

  const keys = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
  document.addEventListener("keydown", function (event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in keys) show(shown + keys[event.key]);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(slides.length - 1);
    else return;
    event.preventDefault();
  });
  back.addEventListener("click", () => show(shown - 1));
  on.addEventListener("click", () => show(shown + 1));
  slides.forEach((slide) => slide.addEventListener("toggle", () => fit(slide), true));
  slides.forEach((slide) => slide.querySelectorAll("img").forEach((image) => image.addEventListener("load", () => fit(slides[shown]))));
  window.addEventListener("resize", () => fit(slides[shown]));
  window.addEventListener("hashchange", fromAddress);
  document.body.classList.add("one-at-a-time");
  fromAddress();
  if (window.MathJax && window.MathJax.startup && window.MathJax.startup.promise) {
    window.MathJax.startup.promise.then(() => fit(slides[shown]));
  }
})();
