"use strict";
(function () {
  var figures = Array.prototype.slice.call(document.querySelectorAll("figure"));
  function show(figure, rect) {
    var cursor = figure.querySelector(".cursor"), out = figure.querySelector(".readout"), level = figure.querySelector(".level");
    if (!cursor || !out) return;
    if (level) level.style.visibility = "hidden";
    if (!rect) { cursor.style.visibility = "hidden"; out.textContent = ""; return; }
    var x = +rect.getAttribute("x") + rect.getAttribute("width") / 2;
    cursor.setAttribute("transform", "translate(" + x + ",0)");
    cursor.style.visibility = "visible";
    out.textContent = rect.firstChild.textContent;
  }
  function digits(value) {
    return value >= 100 ? String(Math.round(value)) : value.toPrecision(3);
  }
  function measure(figure, svg, y) {
    var data = svg.dataset, top = +data.top, bottom = +data.bottom, level = svg.querySelector(".level");
    if (!level || y < top || y > bottom) return;
    var value = data.low * Math.pow(data.high / data.low, (bottom - y) / (bottom - top));
    level.setAttribute("transform", "translate(0," + y + ")");
    level.style.visibility = "visible";
    figure.querySelector(".readout").textContent += " (pointer at " + digits(value) + " " + data.unit + ")";
  }
  function nearest(figure, x) {
    var best = null, least = Infinity;
    figure.querySelectorAll(".hits rect").forEach(function (rect) {
      var far = Math.abs(+rect.getAttribute("x") + rect.getAttribute("width") / 2 - x);
      if (far < least) { least = far; best = rect; }
    });
    return best;
  }
  figures.forEach(function (figure) {
    var svg = figure.querySelector("svg"), axis = figure.getAttribute("data-axis");
    if (!svg || !svg.querySelector(".hits")) return;
    var at = null;
    function put(x) {
      at = x;
      figures.forEach(function (other) {
        if (other === figure || (axis && other.getAttribute("data-axis") === axis)) {
          show(other, x === null ? null : nearest(other, x));
        }
      });
    }
    svg.addEventListener("pointermove", function (event) {
      var box = svg.getBoundingClientRect();
      put((event.clientX - box.left) * 720 / box.width);
      measure(figure, svg, (event.clientY - box.top) * 720 / box.width);
    });
    svg.addEventListener("pointerleave", function () { put(null); });
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", function (event) {
      var step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      var rects = Array.prototype.slice.call(svg.querySelectorAll(".hits rect"));
      var here = rects.indexOf(nearest(figure, at === null ? 0 : at));
      var next = rects[Math.max(0, Math.min(rects.length - 1, here + (at === null ? 0 : step)))];
      put(+next.getAttribute("x") + next.getAttribute("width") / 2);
    });
  });
  document.querySelectorAll("button[data-copy]").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      var from = document.getElementById(button.getAttribute("data-copy"));
      navigator.clipboard.writeText(from.textContent).then(function () { button.textContent = "Copied"; });
    });
  });
  var opened = [];
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (one) { one.open = true; opened.push(one); });
  });
  window.addEventListener("afterprint", function () {
    opened.splice(0).forEach(function (one) { one.open = false; });
  });
})();
