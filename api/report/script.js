// Draws the charts. Colours of text and grids come from the style sheet, so that dark, light and paper need no redraw.
(function () {
  "use strict";
  var figures = JSON.parse(document.getElementById("figures").textContent);
  var config = { responsive: true, displaylogo: false, modeBarButtons: [["toImage"]], showSendToCloud: false };
  var drawn = [];
  Object.keys(figures).forEach(function (name) {
    var place = document.getElementById("figure-" + name);
    if (place) {
      if (place.clientWidth < 420) { figures[name].layout.font.size = 10; }
      Plotly.newPlot(place, figures[name].data, figures[name].layout, config);
      drawn.push(place);
    }
  });
  // On paper the page is narrower than the window, and nothing scrolls or opens.
  var closed = [];
  window.addEventListener("beforeprint", function () {
    drawn.forEach(function (place) { Plotly.relayout(place, { width: 660 }); });
    closed = Array.prototype.filter.call(document.querySelectorAll("section details"), function (part) {
      return !part.open && part.querySelector("table");
    });
    closed.forEach(function (part) { part.open = true; });
  });
  window.addEventListener("afterprint", function () {
    drawn.forEach(function (place) { Plotly.relayout(place, { width: null, autosize: true }); });
    closed.forEach(function (part) { part.open = false; });
  });
})();
