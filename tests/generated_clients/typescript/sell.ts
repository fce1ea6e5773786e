// Adds pets, pages through them and sells one; prints what it saw as JSON.
import { client } from './client/client.gen.ts';
import { createCategory, createPet, listPets, placeOrder, type Pet } from './client/index.ts';
import { fetchWithRetry } from './retry.ts';

client.setConfig({ auth: process.env.PETSTORE_KEY, fetch: fetchWithRetry });

/** Add a pet; safe to repeat with the same key. */
async function add(name: string, categoryId: number, idempotencyKey: string): Promise<number> {
  const { data: pet } = await createPet({
    body: { name, categoryId, status: 'available' },
    headers: { 'Idempotency-Key': idempotencyKey },
    throwOnError: true,
  });
  return pet.id;
}

/** Yield the pets of a category, page by page. */
async function* pages(categoryId: number): AsyncGenerator<Pet[]> {
  let cursor: string | undefined;
  do {
    const { data: page, response } = await listPets({
      query: { categoryId, limit: 2, cursor },
      throwOnError: true,
    });
    yield page;
    cursor = nextCursor(response.headers.get('Link') ?? '');
  } while (cursor !== undefined);
}

/** Return the cursor of the next page. The last page has no link to a next one. */
function nextCursor(link: string): string | undefined {
  const target = link.match(/<([^>]+)>; rel="next"/)?.[1];
  return target && (new URL(target).searchParams.get('cursor') ?? undefined);
}

const { data: category } = await createCategory({
  body: { name: `Dogs ${crypto.randomUUID()}` },
  throwOnError: true,
});

const ids: number[] = [];
for (const name of ['Bella', 'Charlie', 'Daisy']) {
  ids.push(await add(name, category.id, crypto.randomUUID()));
}
const repeated = crypto.randomUUID();
ids.push(await add('Milo', category.id, repeated));
const again = await add('Milo', category.id, repeated);

const seen: number[][] = [];
for await (const page of pages(category.id)) seen.push(page.map((pet) => pet.id));

const { data: order } = await placeOrder({ body: { petId: ids[0] }, throwOnError: true });
const { error: conflict } = await placeOrder({ body: { petId: ids[0] } });

const sold = { petId: order.petId, status: order.status };
console.log(JSON.stringify({ ids, again, seen, order: sold, conflict }));
