'use strict';
{
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const on = (element, event, work) => element && element.addEventListener(event, work);
  const groups = all('#groups > .group');
  const search = one('#q');
  const shown = one('#shown');
  const chosen = (name) => all(`.filters input[name=${name}]:checked`).map((box) => box.value);
  all('.tools, .filters, .copy').forEach((element) => { element.hidden = false; });

  const texts = new Map();
  const textOf = (group) => {
    if (!texts.has(group)) texts.set(group, `${group.dataset.sev} ${group.textContent}`.toLowerCase());
    return texts.get(group);
  };
  const show = () => {
    if (!search) return;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const severities = chosen('sev'), fresh = chosen('new').length;
    let many = 0, findings = 0;
    for (const group of groups) {
      const data = group.dataset;
      const fits = words.every((word) => textOf(group).includes(word))
        && (!severities.length || severities.includes(data.sev))
        && (!fresh || Number(data.new) > 0);
      group.hidden = !fits;
      if (fits) { many += 1; findings += Number(data.n); }
    }
    shown.textContent = `${many.toLocaleString('en')} of ${groups.length.toLocaleString('en')} groups, `
      + `${findings.toLocaleString('en')} findings` + (many ? '' : '. Nothing matches: clear the search or a filter.');
  };
  on(search, 'input', show);
  all('.filters input[type=checkbox]').forEach((box) => on(box, 'change', show));
  on(one('.filters'), 'submit', (event) => event.preventDefault());
  on(document, 'keydown', (event) => {
    if (!search) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === '/' && !typing) { event.preventDefault(); search.focus(); }
    if (event.key === 'Escape' && document.activeElement === search) { search.value = ''; show(); }
  });
  const open = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const group = name.startsWith('g-') && document.getElementById(name);
    if (group) { group.hidden = false; group.open = true; group.querySelector('summary').focus(); }
  };
  addEventListener('hashchange', open);
  open();

  on(one('#theme'), 'change', (event) => {
    const theme = event.target.value;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  });
  on(one('#all'), 'click', (event) => {
    const opening = event.target.textContent === 'Open all';
    groups.forEach((group) => { if (!group.hidden) group.open = opening; });
    event.target.textContent = opening ? 'Close all' : 'Open all';
  });
  on(one('#print'), 'click', () => print());
  const copied = async (button, text) => {
    const words = button.innerHTML;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement('textarea');
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
      button.focus();
    }
    button.textContent = 'Copied';
    setTimeout(() => { button.innerHTML = words; }, 1500);
  };
  const inOneLine = (element) => element.textContent.replace(/\s+/g, ' ').trim();
  on(one('#copy'), 'click', (event) => {
    const steps = all('.first > li').map((step, at) => `${at + 1}. ${inOneLine(step.querySelector('b'))}: `
      + inOneLine(step.querySelector('.close')));
    copied(event.currentTarget, [...all('h1, .lead').map(inOneLine), ...steps].join('\n'));
  });
  all('.copy').forEach((button) => on(button, 'click', () => {
    copied(button, button.parentElement.querySelector('code').textContent.trim());
  }));
  on(one('#csv'), 'click', () => {
    const cell = (value) => {
      const text = String(value).replace(/\s+/g, ' ').trim();
      return `"${(/^[=+\-@\t\r']/.test(text) ? `'${text}` : text).replace(/"/g, '""')}"`;
    };
    const rows = groups.filter((group) => !group.hidden).map((group) => [
      group.dataset.sev, group.dataset.n, group.dataset.new, group.querySelector('.say').textContent,
    ]);
    const lines = [['severity', 'findings', 'new', 'what'], ...rows].map((row) => row.map(cell).join(','));
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([lines.join('\r\n')], { type: 'text/csv' }));
    link.download = 'findings.csv';
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
