const TRIES = 3;
const LONGEST_WAIT = 120; // seconds
let resumeAt = 0; // in milliseconds

/**
 * Fetch until the response is no 429, or says to wait too long.
 * After a 429 every request waits. The refused one had no effect, so it is sent again.
 */
export async function fetchWithRetry(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  for (let left = TRIES - 1; ; left--) {
    await new Promise((resume) => setTimeout(resume, resumeAt - Date.now()));
    const response = await fetch(request.clone());
    const wait = Number(response.headers.get('Retry-After'));
    if (response.status !== 429 || wait > LONGEST_WAIT || left === 0) return response;
    resumeAt = Date.now() + wait * 1000;
  }
}
