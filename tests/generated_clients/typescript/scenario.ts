// Adds animals, pages through them and sells one; prints what it saw as JSON.
import { client } from './client/client.gen.ts';
import { createPet, listPets, placeOrder } from './client/index.ts';

const [url, token, category] = process.argv.slice(2);
const categoryId = Number(category);
client.setConfig({ baseUrl: url, auth: token });

async function added(name: string, idempotencyKey: string): Promise<number> {
  const { data } = await createPet({
    headers: { 'Idempotency-Key': idempotencyKey },
    body: { name, categoryId, status: 'available' },
    throwOnError: true,
  });
  return data.id;
}

/** The cursor of the next page; `Link` has none on the last page. */
function nextCursor(response: Response): string | undefined {
  const target = response.headers.get('Link')?.match(/<([^>]+)>; rel="next"/)?.[1];
  return target && (new URL(target, response.url).searchParams.get('cursor') ?? undefined);
}

async function* pages(): AsyncGenerator<number[]> {
  let cursor: string | undefined;
  do {
    const { data, response } = await listPets({
      query: { categoryId, limit: 2, cursor },
      throwOnError: true,
    });
    yield data.map((pet) => pet.id);
    cursor = nextCursor(response);
  } while (cursor);
}

const ids = [];
for (const name of ['Bella', 'Charlie', 'Daisy']) ids.push(await added(name, crypto.randomUUID()));
const repeated = crypto.randomUUID();
ids.push(await added('Milo', repeated));
const again = await added('Milo', repeated);

const seen = [];
for await (const page of pages()) seen.push(page);

const first = await placeOrder({ body: { petId: ids[0] } });
const second = await placeOrder({ body: { petId: ids[0] } });
if (second.error === undefined) throw new Error('two buyers got the same animal');

console.log(
  JSON.stringify({
    ids,
    again,
    seen,
    order: { petId: first.data?.petId, status: first.data?.status },
    conflict: second.error,
  }),
);
