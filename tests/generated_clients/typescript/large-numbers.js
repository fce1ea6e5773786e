// Sends and reads a category above 2^53 - 1 without rounding it.
const pets = 'https://shop.example/v1/pets';
const category = 9007199254740993n;
const headers = {
  Authorization: `Bearer ${process.env.PETSTORE_KEY}`,
  'Content-Type': 'application/json',
};

const body = JSON.stringify({ name: 'Bella', categoryId: JSON.rawJSON(String(category)) });
await fetch(pets, { method: 'POST', headers, body });

const response = await fetch(`${pets}?categoryId=${category}`, { headers });
const found = JSON.parse(await response.text(), (name, value, { source }) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(source) : value,
);
console.log(String(found[0].categoryId));
