// Sells a pet with the types of openapi-typescript and the client openapi-fetch.
import createClient from 'openapi-fetch';
import type { paths } from './paths.ts';
import { fetchWithRetry } from './retry.ts';

const client = createClient<paths>({
  baseUrl: 'https://shop.example/v1',
  headers: { Authorization: `Bearer ${process.env.PETSTORE_KEY}` },
  fetch: fetchWithRetry,
});

const { data: category, error } = await client.POST('/categories', {
  body: { name: `Cats ${crypto.randomUUID()}` },
});
if (error) throw new Error(error.message);

const { data: pet } = await client.POST('/pets', {
  body: { name: 'Luna', categoryId: category.id, status: 'available' },
});
if (!pet) throw new Error('not added');
const { data: order } = await client.POST('/store/orders', { body: { petId: pet.id } });
const { error: conflict } = await client.POST('/store/orders', { body: { petId: pet.id } });
console.log(JSON.stringify({ status: order?.status, conflict: conflict?.code }));
