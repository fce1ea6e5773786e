// Makes the console pleasant; every page works without it.

for (const time of document.querySelectorAll('time')) {
  time.textContent = new Date(time.dateTime).toLocaleString(undefined, {dateStyle: 'medium', timeStyle: 'short'});
}
