// Every page works without it.
const HOME = new URL('..', import.meta.url).pathname.replace(/\/$/, '');
const HEALTH = new URL('../../healthz', import.meta.url);
const BY_ITSELF = {'Console-Refresh': '1'}; // does not extend the session
const MARKED = '[id][data-follow], [id][data-refresh], #printed, main h1';
const FIELDS = 'input:not([type=checkbox]), select, textarea';
const POST = 'form[method=post]';

const byId = id => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const find = selector => document.querySelector(selector);
const live = byId('live'); // only in a session
const said = byId('said');
const help = byId('help');
const typedIn = new Set(); // the forms with unsaved input

let after = document.body.dataset.cursor ?? ''; // the position in the feed of events
let isSignedOut = false;
let isOffline = false;
let version = 0; // of what is shown: a response for an older one comes too late
let poll = new AbortController();
let movedAt = -Infinity;
let bell = Promise.withResolvers(); // what has nothing to do waits for it
const ring = () => { bell.resolve(); bell = Promise.withResolvers(); };

// Seconds vary, so that many consoles do not ask at once.
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
const sleep = seconds => pause(seconds * (500 + 1000 * Math.random()));
const parse = async response => new DOMParser().parseFromString(await response.text(), 'text/html');

function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text; // else it is read out again
}

// Times and numbers

const timeZone = document.body.dataset.zone; // the store's
const format = options => new Intl.DateTimeFormat(undefined, {timeZone, ...options});
const short = format({dateStyle: 'medium', timeStyle: 'short'});
const full = format({dateStyle: 'full', timeStyle: 'long'});
const day = format({dateStyle: 'medium', timeZone: 'UTC'});
const dayOfYear = format({day: 'numeric', month: 'short', timeZone: 'UTC'});
const number = new Intl.NumberFormat();

function timeLeft(moment) {
  if (moment <= Date.now()) return 'time is up';
  const minutes = Math.max(1, Math.round((moment - Date.now()) / 60000));
  if (minutes < 60) return `${minutes} min left`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ''} left`;
  return `${Math.floor(minutes / 1440)} days left`;
}

function timeAgo(moment) {
  const minutes = (Date.now() - moment) / 60000;
  const [unit, name] = minutes < 60 ? [1, 'minute'] : minutes < 1440 ? [60, 'hour'] : [1440, 'day'];
  const count = Math.floor(minutes / unit);
  if (count < 2) return count < 1 ? 'just now' : `${unit === 60 ? 'an' : 'a'} ${name} ago`;
  return `${count} ${name}s ago`;
}

function localise(root) {
  for (const time of all('time[datetime]', root)) {
    const moment = new Date(time.dateTime);
    if (isNaN(moment)) continue;
    const isDay = time.dateTime.length === 10; // which is one in UTC
    time.textContent = 'until' in time.dataset ? timeLeft(moment)
      : 'ago' in time.dataset ? timeAgo(moment)
      : (isDay ? day : short).format(moment).replace(/ (?=\S+$)/, '\xa0');
    if (!isDay) time.title = full.format(moment);
  }
  for (const label of all('.chart :is(text, title, th)', root)) {
    label.textContent = label.textContent.replace(/^\d+ [A-Z][a-z]+/, shown => dayOfYear.format(new Date(`${shown} 2000 UTC`)));
  }
  for (const data of all('data[value]', root)) {
    if (data.value && isFinite(data.value)) data.textContent = number.format(data.value);
  }
}

function countDown() {
  for (const time of all('time[data-ago]')) setText(time, timeAgo(new Date(time.dateTime)));
  for (const time of all('time[data-until]')) {
    const text = timeLeft(new Date(time.dateTime));
    if (text === 'time is up' && time.textContent !== text) setText(said, 'A time on this page is up.');
    setText(time, text);
  }
}

function prepare(root) {
  localise(root);
  for (const element of all('button[data-copy], [data-script]', root)) element.hidden = false;
}

function countSelected() {
  setText(byId('selected'), find('[name=all]:checked') ? 'All that match' : `${all('[name=pet]:checked').length} selected`);
}

// Replace a part of the page, and keep what is done there

// A row or a card is known by its own name, or by where its first link leads.
function nameOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return '';
  if (node.id || node.dataset.resource) return node.id || node.dataset.resource;
  const link = node.matches('tr, li, article') && node.querySelector('a[href]');
  return link ? link.getAttribute('href') : '';
}

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = fresh.data;
  } else {
    for (const {name} of [...old.attributes]) {
      if (name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const {name, value} of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    morphChildren(old, fresh);
    if (old.matches(FIELDS)) old.value = fresh.value; // else what a script has set would stay
  }
}

function morphChildren(old, fresh) {
  const named = new Map([...old.children].map(child => [nameOf(child), child]));
  let here = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const name = nameOf(next);
    let match = name ? named.get(name) : here;
    if (match && !name && (nameOf(match) || match.nodeName !== next.nodeName)) match = undefined;
    named.delete(name);
    if (!match) {
      old.insertBefore(next, here);
    } else {
      if (match === here) here = here.nextSibling;
      else old.insertBefore(match, here);
      morph(match, next);
    }
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

function isInUse(element) {
  const active = document.activeElement;
  return element.contains(active) && active.matches(FIELDS)
    || [...typedIn].some(form => element.contains(form))
    || element.querySelector('[aria-busy=true]')
    // A button must not move away under the pointer.
    || element.matches(':hover') && performance.now() - movedAt < 1000;
}

// Return whether all that is marked is up to date.
async function refresh() {
  const wanted = version;
  const response = await fetch(location.href, {headers: BY_ITSELF});
  if ([403, 404].includes(response.status)) return true; // the next change of the person is told
  check(response);
  const page = await parse(response);
  if (wanted !== version) return false;
  if (!document.title.startsWith('Error')) document.title = page.title;
  let isWhole = true;
  const undo = find('.notice form'), same = undo && `main form[action="${undo.getAttribute('action')}"]`;
  const again = undo && page.querySelector(`${same} [name=version]`);
  // The page has another form for the same: the undo goes with that, or once its version is an older one.
  if (undo && all(same).length > 1 && again?.value !== undo.elements.version?.value) undo.remove();
  const active = document.activeElement;
  for (const old of all(MARKED)) {
    const fresh = old.id ? page.getElementById(old.id) : page.querySelector('main h1');
    if (!fresh) continue;
    prepare(fresh);
    if (old.isEqualNode(fresh)) continue;
    if (isInUse(old)) isWhole = false;
    else morph(old, fresh);
  }
  countSelected(); // a selected pet may be gone
  if (active !== document.activeElement && active.isConnected) active.focus({preventScroll: true});
  return isWhole;
}

// The session

const leadsToSignIn = response => response.status === 401 || new URL(response.url).pathname === `${HOME}/sign-in`;

function check(response) {
  if (leadsToSignIn(response)) signOut();
  else if (response.ok) return;
  throw Object.assign(new Error(response.status), {seconds: Number(response.headers.get('retry-after'))});
}

// Without unsaved input the page goes to sign-in: it must not stay for others to read.
function signOut() {
  isSignedOut = true;
  setText(live, '');
  if (![...typedIn].some(form => form.isConnected)) {
    location.assign(location.href.split('#')[0]);
    return;
  }
  if (!byId('signed-out')) {
    byId('main').insertAdjacentHTML('afterbegin', `<div id="signed-out" class="problem box" role="alert">
      <p>You were signed out. <a href="${HOME}/sign-in" target="_blank">Sign in again in a new tab</a>. What you typed stays here.</p></div>`);
  }
  byId('signed-out').scrollIntoView({block: 'nearest'});
}

// Changes by others

const followed = () => new Set(all('[id][data-follow]').flatMap(({dataset}) => dataset.follow.split(' ')));
const isAway = () => document.hidden || isSignedOut;
const isIdle = () => isAway() || isOffline;
const kindOf = resource => resource.split('/')[0];

// Return whether something that is followed has changed.
async function nextChange(wanted) {
  const kinds = [...wanted].map(kindOf).join(' ');
  const query = new URLSearchParams({after, kinds}), mine = poll = new AbortController();
  const timeout = setTimeout(() => mine.abort(), 40000); // the service takes 25 seconds at most
  if (after) setText(live, 'Live');
  const response = await fetch(`${HOME}/changes?${query}`, {headers: BY_ITSELF, signal: mine.signal});
  check(response);
  const {cursor, resources} = await response.json();
  clearTimeout(timeout);
  after = cursor;
  return resources === null || resources.some(name => wanted.has(name) || wanted.has(kindOf(name)));
}

async function follow() {
  let failures = 0, rest = 2;
  for (;;) {
    const wanted = followed();
    if (isIdle() || !wanted.size) {
      if (!wanted.size) setText(live, '');
      await bell.promise;
      continue;
    }
    const began = performance.now();
    try {
      const isNews = await nextChange(wanted);
      isSignedOut = false;
      byId('signed-out')?.remove();
      setText(live, 'Live');
      failures = 0;
      // Where something changes all the time, once in a while is enough.
      rest = isNews && performance.now() - began < 5000 ? Math.min(2 * rest, 20) : 2;
      await sleep(1);
      while (isNews && !document.hidden && !await refresh()) await sleep(rest);
      if (isNews) await sleep(rest);
    } catch (error) {
      if (poll.signal.aborted) continue; // the tab was hidden, or the page has changed
      failures += 1;
      after = ''; // so that the service responds at once
      if (isSignedOut) continue;
      if (failures > 1) setText(live, error.message === '403' ? 'You no longer have access to this page' : 'Reconnecting…');
      await (error.seconds ? sleep(2 * error.seconds) : Promise.race([bell.promise, sleep(Math.min(2 ** failures, 60))]));
    }
  }
}

// A long poll does not see within 5 seconds that the service is gone.
async function watch() {
  for (;;) {
    const isResting = isAway() || !followed().size;
    await (isResting ? bell.promise : Promise.race([bell.promise, pause(2000)]));
    const response = fetch(HEALTH, {signal: AbortSignal.timeout(2500)});
    const isGone = await response.then(({status}) => status > 499, () => true);
    if (isGone === isOffline) continue;
    document.body.classList.toggle('offline', isOffline = isGone);
    if (isGone) {
      setText(live, 'Offline');
      poll.abort();
    } else {
      ring();
    }
  }
}

async function renew() {
  let failures = 0;
  for (;;) {
    const seconds = Math.min(...all('[id][data-refresh]').map(({dataset}) => dataset.refresh));
    if (isIdle() || !isFinite(seconds)) {
      await bell.promise;
      continue;
    }
    await sleep(seconds * Math.min(2 ** failures, 16));
    if (!isIdle()) failures = await refresh().then(() => 0, () => failures + 1);
  }
}

// Forms

function tell(form, text) {
  const problem = {className: 'problem', role: 'alert', textContent: text};
  form.append(Object.assign(document.createElement('p'), problem));
}

// A part of a page is read out only if it changes.
function tellNotice() {
  setTimeout(() => setText(said, find('.notice p')?.textContent ?? ''), 100);
}

// Show the page that a form led to, in place of this one.
function show(page, response, form) {
  const fresh = document.adoptNode(page.querySelector('main'));
  const focused = document.activeElement?.id;
  if (response.redirected) {
    shown = response.url;
    history[shown === location.href ? 'replaceState' : 'pushState'](null, '', shown);
  }
  document.title = page.title;
  byId('main').replaceWith(fresh);
  morph(find('header'), page.querySelector('header'));
  prepare(document);
  if (!response.ok && typedIn.has(form)) all(POST, fresh).forEach(again => typedIn.add(again));
  typedIn.delete(form);
  const first = selector => fresh.querySelector(selector);
  const target = first('[role=alert]') ?? first('[autofocus]') ?? first('.notice')
    ?? byId(focused)
    ?? (form.matches('[data-continue]') ? null : fresh); // steps do not take the focus
  if (target && target.tabIndex < 0) target.tabIndex = -1;
  target?.focus();
  if (target?.matches(FIELDS)) tellNotice(); // else the focus is on it
  poll.abort();
  ring();
  goOn();
}

async function send(form, button) {
  const body = new URLSearchParams(new FormData(form, button)); // a form with a file is plain
  const target = button?.getAttribute('formaction') ?? form.getAttribute('action');
  const mine = version += 1;
  let response, page;
  form.querySelector('.problem[role=alert]')?.remove();
  form.setAttribute('aria-busy', 'true');
  if (button) button.disabled = true;
  try {
    response = await fetch(target, {method: 'POST', body});
    page = await parse(response);
  } catch {
    tell(form, 'The service cannot be reached. What you typed is still here: try again.');
  } finally {
    form.removeAttribute('aria-busy');
    if (button) button.disabled = false;
  }
  if (!page || mine !== version) return; // as in a browser, the form that was sent last counts
  // Else what was typed would be lost.
  if (leadsToSignIn(response)) signOut();
  else if (page.querySelector(response.ok ? 'main' : `main ${POST}:not([data-plain])`)) show(page, response, form);
  else tell(form, page.querySelector('main p')?.textContent ?? 'That did not work. Try again.');
}

// Browsers remember no secret that is hidden as it is sent.
function toggle(button, isShown) {
  byId(button.dataset.show).type = isShown ? 'text' : 'password';
  setText(button, isShown ? 'Hide' : 'Show');
}

addEventListener('submit', event => {
  const form = event.target;
  for (const button of all('[data-show]', form)) toggle(button, false);
  if (!live || !form.matches(`main ${POST}:not([data-plain])`)) {
    typedIn.delete(form);
    return;
  }
  event.preventDefault();
  if (!form.matches('[aria-busy=true]')) send(form, event.submitter);
});

addEventListener('input', event => {
  const form = event.target.closest('form'); // a selected row is no text that could be lost
  if (form?.matches(`main ${POST}`)) typedIn.add(form);
});

addEventListener('change', ({target}) => {
  const boxes = all('[name=pet]');
  if (target.id === 'select-all') for (const box of boxes) box.checked = target.checked;
  countSelected();
});

addEventListener('beforeunload', event => {
  if ([...typedIn].some(form => form.isConnected)) event.preventDefault();
});

// The next step of something long, such as an import.
function goOn() {
  find('main form[data-continue]')?.requestSubmit();
}

let shown = location.href;
addEventListener('popstate', () => {
  if (location.href.split('#')[0] !== shown.split('#')[0]) location.reload();
});

// Keyboard, help, copies

const OPTION = 'petstore-shortcuts';
const areShortcutsOn = () => localStorage.getItem(OPTION) !== 'off';
let prefix = '', pressedAt = -Infinity, pressed;

addEventListener('keydown', event => {
  const isTyping = event.target.closest(`${FIELDS}, [contenteditable]`);
  const isLetter = /^\w$/.test(event.key), isScanned = isLetter && event.timeStamp - pressedAt < 40;
  const act = action => { pressed = setTimeout(action, 40); };
  if (isLetter) pressedAt = event.timeStamp;
  clearTimeout(pressed);
  const opened = event.key === 'Escape' && !help?.open && find('.confirm[open]');
  if (opened) opened.open = opened.querySelector('summary').focus();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !live || !areShortcutsOn()) return;
  const keys = prefix + event.key;
  prefix = '';
  if (isScanned) return;
  const link = find(`[data-key="${CSS.escape(keys)}"]`);
  const search = find('main [role=search] input');
  const box = event.target.closest('tr')?.querySelector('[name=pet]');
  if (keys === 'g') prefix = 'g ';
  else if (keys === '/' && search) search.focus();
  else if (keys === '?' && help) help.open || help.showModal();
  else if (keys === 'x' && box) act(() => box.click());
  else if (link) act(() => link.href ? link.click() : link.querySelector('[id]').focus());
  else return;
  event.preventDefault();
});

addEventListener('click', async event => {
  if (help && event.target.closest('[data-help]')) {
    event.preventDefault();
    help.showModal();
  }
  const shows = event.target.closest('button[data-show]');
  if (shows) toggle(shows, shows.textContent === 'Show');
  const button = event.target.closest('button[data-copy]');
  if (!button) return;
  const source = byId(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
  } catch { // over http, or not allowed
    getSelection().selectAllChildren(source);
    document.execCommand('copy');
  }
  button.textContent = 'Copied';
  setText(said, 'Copied.');
});

const option = byId('shortcuts');
if (option) {
  option.checked = areShortcutsOn();
  option.addEventListener('change', () => localStorage.setItem(OPTION, option.checked ? 'on' : 'off'));
}

// Begin

prepare(document);
tellNotice();
setInterval(countDown, 30000);
addEventListener('pointermove', () => { movedAt = performance.now(); });
addEventListener('online', ring);
addEventListener('offline', ring);
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    poll.abort();
  } else {
    isSignedOut = false; // perhaps signed in again in another tab
    ring();
  }
});
if (live) {
  follow();
  watch();
  renew();
  goOn();
}
