// Sells an animal with the types of openapi-typescript and the client openapi-fetch.
import createClient from 'openapi-fetch';
import type { paths } from './paths.ts';

const [url, token, category] = process.argv.slice(2);
const client = createClient<paths>({
  baseUrl: url,
  headers: { Authorization: `Bearer ${token}` },
});

// Only required members: TypeScript would refuse the bodies if the others were required too.
const { data: pet } = await client.POST('/pets', {
  body: { name: 'Luna', categoryId: Number(category), status: 'available' },
});
if (pet === undefined) throw new Error('not added');
const { data: order } = await client.POST('/store/orders', { body: { petId: pet.id } });
const { error } = await client.POST('/store/orders', { body: { petId: pet.id } });

console.log(JSON.stringify({ status: order?.status, code: error?.code }));
