(function () {
  'use strict';
  var root = document.documentElement;
  root.classList.add('scripted');
  function all(selector, within) {
    return Array.prototype.slice.call((within || document).querySelectorAll(selector));
  }
  // Hidden rows take no space: the rows below them move up, and the image becomes lower.
  function close(rows) {
    var svg = rows.ownerSVGElement, box = svg.viewBox.baseVal, top = +rows.dataset.top;
    var pitch = +rows.dataset.pitch, shown = 0;
    all('g.row', rows).forEach(function (row) {
      if (row.hasAttribute('hidden')) return;
      row.setAttribute('transform', 'translate(0 ' + (top + pitch * shown) + ')');
      shown++;
    });
    var bottom = top + pitch * shown;
    all('.grid line', rows).forEach(function (line) { line.setAttribute('y2', bottom); });
    rows.querySelector('.foot').setAttribute('transform', 'translate(0 ' + bottom + ')');
    svg.setAttribute('viewBox', '0 0 ' + box.width + ' ' + (bottom + 40));
    svg.setAttribute('height', bottom + 40);
  }
  function filter() {
    var off = {};
    all('form.filters fieldset').forEach(function (set) {
      off[set.dataset.axis] = all('input', set).filter(function (box) { return !box.checked; })
        .map(function (box) { return box.value; });
    });
    Object.keys(off).forEach(function (axis) {
      all('[data-' + axis + ']').forEach(function (element) { element.removeAttribute('hidden'); });
    });
    Object.keys(off).forEach(function (axis) {
      if (!off[axis].length) return;
      all('[data-' + axis + ']').forEach(function (element) {
        if (off[axis].indexOf(element.getAttribute('data-' + axis)) >= 0)
          element.setAttribute('hidden', '');
      });
    });
    all('g.rows').forEach(close);
  }
  function save(name, type, content) {
    var link = document.createElement('a');
    link.download = name;
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type: type}));
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  function picture(figure) {
    var copy = figure.querySelector('.wide-only svg').cloneNode(true);
    all('[hidden]', copy).forEach(function (element) { element.remove(); });
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy);
  }
  var forms = {
    svg: function (figure, name) { save(name + '.svg', 'image/svg+xml', picture(figure)); },
    csv: function (figure, name) { save(name + '.csv', 'text/csv', figure.dataset.csv); },
    png: function (figure, name) {
      var image = new Image(), box = figure.querySelector('.wide-only svg').viewBox.baseVal;
      image.onload = function () {
        var canvas = document.createElement('canvas'), brush = canvas.getContext('2d');
        canvas.width = 2 * box.width;
        canvas.height = 2 * box.height;
        brush.fillStyle = '#ffffff';
        brush.fillRect(0, 0, canvas.width, canvas.height);
        brush.drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(function (blob) { save(name + '.png', 'image/png', blob); });
      };
      image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(picture(figure));
    }
  };
  // RFC 4180: fields in quotes may hold commas and quotes.
  function fields(line) {
    return line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).slice(0, -1).map(function (field) {
      field = field.replace(/,$/, '');
      return field[0] === '"' ? field.slice(1, -1).replace(/""/g, '"') : field;
    });
  }
  function tabulate(text) {
    var table = document.createElement('table');
    text.trim().split('\n').forEach(function (line, i) {
      var row = table.insertRow();
      fields(line + ',').forEach(function (field) {
        var cell = document.createElement(i ? 'td' : 'th');
        cell.textContent = field;
        row.appendChild(cell);
      });
    });
    return table;
  }
  all('figure').forEach(function (figure) {
    var text = figure.querySelector('pre').textContent;
    figure.dataset.csv = text;
    all('button', figure).forEach(function (button) {
      button.addEventListener('click', function () { forms[button.dataset.form](figure, figure.id); });
    });
    figure.querySelector('details').addEventListener('toggle', function () {
      var pre = figure.querySelector('pre'), wide = document.createElement('div');
      if (!pre) return;
      wide.className = 'wide';
      wide.tabIndex = 0;
      wide.appendChild(tabulate(text));
      pre.replaceWith(wide);
    });
  });
  // A click on a column's head sorts the rows, a second one backwards; the first column has their first order.
  function sortable(table) {
    var body = table.tBodies[0], heads = all('thead th', table);
    var rows = all('tr', body).map(function (row, place) { return {row: row, place: place}; });
    heads.forEach(function (head, column) {
      var button = document.createElement('button');
      button.type = 'button';
      while (head.firstChild) button.appendChild(head.firstChild);
      head.appendChild(button);
      button.addEventListener('click', function () {
        var sign = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
        heads.forEach(function (other) { other.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
        function value(entry) {
          var number = column ? parseFloat(entry.row.cells[column].dataset.value) : entry.place;
          return isNaN(number) ? Infinity : sign * number;
        }
        rows.slice().sort(function (a, b) {
          var x = value(a), y = value(b);
          return x < y ? -1 : x > y ? 1 : a.place - b.place;
        }).forEach(function (entry) { body.appendChild(entry.row); });
      });
    });
  }
  all('table.matrix').forEach(sortable);
  // The address holds a place on the page and what is hidden: #history?framework=mxnet&stage=train
  var form = document.querySelector('form.filters'), shown = '';
  function state() {
    var hidden = new URLSearchParams();
    all('fieldset input', form).forEach(function (box) {
      if (!box.checked) hidden.append(box.closest('fieldset').dataset.axis, box.value);
    });
    return hidden.toString();
  }
  function refresh() {
    if (state() !== shown) filter();
    shown = state();
  }
  function restore() {
    var parts = location.hash.slice(1).split('?'), hidden = new URLSearchParams(parts[1]);
    var place = document.getElementById(parts[0]);
    all('fieldset input', form).forEach(function (box) {
      box.checked = hidden.getAll(box.closest('fieldset').dataset.axis).indexOf(box.value) < 0;
    });
    refresh();
    if (!place) return;
    for (var at = place.querySelector(':scope > details') || place; at; at = at.parentElement)
      if (at.tagName === 'DETAILS') at.open = true;
    place.scrollIntoView();
  }
  if (form) {
    form.addEventListener('change', function () {
      refresh();
      location.hash = '?' + state();
    });
    form.addEventListener('submit', function (event) { event.preventDefault(); });
    form.querySelector('[data-action=all]').addEventListener('click', function () {
      all('input', form).forEach(function (box) { box.checked = true; });
      form.dispatchEvent(new Event('change'));
    });
    all('a[href^="#"]').forEach(function (link) {
      link.addEventListener('click', function (event) {
        event.preventDefault();
        var hash = link.hash + (state() && '?' + state());
        if (location.hash === hash) restore();
        location.hash = hash;
      });
    });
    window.addEventListener('hashchange', restore);
    form.querySelector('[data-action=theme]').addEventListener('click', function () {
      var dark = getComputedStyle(root).colorScheme === 'dark';
      root.dataset.theme = dark ? 'light' : 'dark';
    });
    restore();
  }
  window.addEventListener('beforeprint', function () {
    all('#method details').forEach(function (part) { part.open = true; });
  });
})();
