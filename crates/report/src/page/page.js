"use strict";
(function () {
  var all = function (root, selector) { return Array.prototype.slice.call(root.querySelectorAll(selector)); };
  var pictures = all(document, "figure svg[role]").filter(function (svg) { return svg.querySelector(".hits"); });
  function axisOf(svg) { return svg.closest("figure").dataset.axis; }
  function isShown(svg) { return svg.getBoundingClientRect().width > 0; }
  // The pictures that share the axis of one, with itself.
  function together(svg) {
    return pictures.filter(function (other) {
      return other === svg || (axisOf(svg) && axisOf(other) === axisOf(svg) && isShown(other));
    });
  }
  function show(svg, rect) {
    var cursor = svg.querySelector(".cursor"), out = svg.closest("figure").querySelector(".readout"), level = svg.querySelector(".level");
    if (!cursor || !out) return;
    if (level) level.style.visibility = "hidden";
    if (!rect) { cursor.style.visibility = "hidden"; out.textContent = ""; return; }
    cursor.setAttribute("transform", "translate(" + middle(rect) + ",0)");
    cursor.style.visibility = "visible";
    out.textContent = rect.firstChild.textContent;
  }
  function middle(rect) { return +rect.getAttribute("x") + rect.getAttribute("width") / 2; }
  function time(us) {
    var unit = us < 1 ? ["ns", 1e-3] : us < 1e3 ? ["us", 1] : us < 1e6 ? ["ms", 1e3] : ["s", 1e6];
    return (us / unit[1]).toPrecision(3) + " " + unit[0];
  }
  function measure(svg, y) {
    var data = svg.dataset, top = +data.top, bottom = +data.bottom, level = svg.querySelector(".level");
    if (!level || y < top || y > bottom) return;
    level.setAttribute("transform", "translate(0," + y + ")");
    level.style.visibility = "visible";
    var value = data.low * Math.pow(data.high / data.low, (bottom - y) / (bottom - top));
    svg.closest("figure").querySelector(".readout").textContent += " (pointer at " + time(value) + ")";
  }
  function nearest(svg, x) {
    var best = null, least = Infinity;
    all(svg, ".hits rect").forEach(function (rect) {
      var far = Math.abs(middle(rect) - x);
      if (far < least) { least = far; best = rect; }
    });
    return best;
  }
  // The part of the data that is shown, as left end and width in the units of the picture.
  function view(svg) {
    var plot = svg.querySelector(".plot"), data = svg.dataset;
    return plot ? [plot.viewBox.baseVal.x, plot.viewBox.baseVal.width] : [+data.left, data.right - data.left];
  }
  function place(svg, event) {
    var box = svg.getBoundingClientRect(), data = svg.dataset, scale = svg.viewBox.baseVal.width / box.width, part = view(svg);
    var across = data.right - data.left, x = (event.clientX - box.left) * scale;
    return [part[0] + (x - data.left) / across * part[1], (event.clientY - box.top) * scale];
  }
  var space = "http://www.w3.org/2000/svg";
  // Shows the seconds from one moment to another in all pictures with this axis; without moments all of them.
  function zoom(svg, from, to) {
    together(svg).filter(function (one) { return one.dataset.seconds; }).forEach(function (one) {
      var data = one.dataset, left = +data.left, across = data.right - left, length = +data.seconds, figure = one.closest("figure");
      var begin = from === undefined ? 0 : Math.max(0, from), end = from === undefined ? length : Math.min(length, to);
      all(one, ".plot").forEach(function (plot) {
        plot.setAttribute("viewBox", [left + begin / length * across, 0, (end - begin) / length * across, plot.viewBox.baseVal.height].join(" "));
      });
      all(one, ".zoom").forEach(function (words) { words.remove(); });
      one.classList.toggle("zoomed", from !== undefined);
      var button = figure.querySelector("button");
      if (from === undefined) { if (button) button.remove(); return; }
      var ticks = all(one, "text.when"), y = ticks.length ? ticks[ticks.length - 1].getAttribute("y") : one.viewBox.baseVal.height;
      [0, 0.25, 0.5, 0.75, 1].forEach(function (part) {
        var words = document.createElementNS(space, "text");
        words.setAttribute("class", "tick when zoom");
        words.setAttribute("x", left + part * across);
        words.setAttribute("y", y);
        words.setAttribute("text-anchor", "middle");
        words.textContent = String(+(begin + part * (end - begin)).toPrecision(4));
        one.appendChild(words);
      });
      if (button) return;
      button = document.createElement("button");
      button.type = "button";
      button.textContent = "Show all of the time";
      button.addEventListener("click", function () { zoom(svg); });
      figure.appendChild(button);
    });
  }
  pictures.forEach(function (svg) {
    var at = null, down = null, mark = null;
    function put(x) {
      at = x;
      together(svg).forEach(function (other) { show(other, x === null ? null : nearest(other, x)); });
    }
    function seconds(x) { return (x - svg.dataset.left) / (svg.dataset.right - svg.dataset.left) * svg.dataset.seconds; }
    function stop() { if (mark) mark.remove(); down = mark = null; }
    svg.addEventListener("pointerdown", function (event) {
      if (svg.dataset.seconds && event.button === 0) { down = place(svg, event)[0]; }
    });
    svg.addEventListener("pointermove", function (event) {
      var here = place(svg, event);
      put(here[0]);
      measure(svg, here[1]);
      if (down === null) return;
      if (!mark) {
        mark = document.createElementNS(space, "rect");
        mark.setAttribute("class", "drag");
        mark.setAttribute("y", 0);
        mark.setAttribute("height", svg.viewBox.baseVal.height);
        all(svg, ".plot").pop().appendChild(mark);
      }
      mark.setAttribute("x", Math.min(down, here[0]));
      mark.setAttribute("width", Math.abs(here[0] - down));
    });
    svg.addEventListener("pointerup", function (event) {
      if (down !== null && mark) {
        var ends = [seconds(down), seconds(place(svg, event)[0])].sort(function (a, b) { return a - b; });
        if (ends[1] - ends[0] > seconds(view(svg)[0] + view(svg)[1]) / 200) zoom(svg, ends[0], ends[1]);
      }
      stop();
    });
    svg.addEventListener("pointerleave", function () { stop(); put(null); });
    svg.addEventListener("dblclick", function () { if (svg.dataset.seconds) zoom(svg); });
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", function (event) {
      if (event.key === "Escape" && svg.dataset.seconds) zoom(svg);
      var step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      var rects = all(svg, ".hits rect"), here = rects.indexOf(nearest(svg, at === null ? 0 : at));
      put(middle(rects[Math.max(0, Math.min(rects.length - 1, here + (at === null ? 0 : step)))]));
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
    all(document, "details:not([open])").forEach(function (one) { one.open = true; opened.push(one); });
  });
  window.addEventListener("afterprint", function () {
    opened.splice(0).forEach(function (one) { one.open = false; });
  });
})();
