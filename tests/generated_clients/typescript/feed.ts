// Prints what happened to pets and orders.
import { client } from './client/client.gen.ts';
import { listEvents, type Event, type OrderEvent, type PetEvent } from './client/index.ts';

client.setConfig({ auth: process.env.PETSTORE_KEY });

const isPetEvent = (event: Event): event is PetEvent => event.type.startsWith('pet.');
const isOrderEvent = (event: Event): event is OrderEvent => event.type.startsWith('order.');

const { data: events } = await listEvents({ query: { limit: 100 }, throwOnError: true });
for (const event of events) {
  if (isPetEvent(event)) console.log(event.type, event.data.name);
  else if (isOrderEvent(event)) console.log(event.type, event.data.petId);
}
