// The samples call the service that shows this page, instead of the demo store on this machine.
const DEMO = "http://127.0.0.1:8000/v1";
const SERVED = `${location.origin}/v1`;
const STARTS = /\b(make|petstore) serve\b/; // a block that starts the demo store

for (const code of document.querySelectorAll("pre code")) {
  if (SERVED === DEMO || STARTS.test(code.textContent)) continue;
  const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    text.data = text.data.replaceAll(DEMO, SERVED);
  }
}
