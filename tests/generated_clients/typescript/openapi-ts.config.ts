import { defineConfig } from '@hey-api/openapi-ts';

export default defineConfig({
  input: 'https://shop.example/v1/openapi.json',
  output: { path: 'client', module: { extension: '.ts' } },
  plugins: [
    '@hey-api/client-fetch',
    '@hey-api/typescript',
    { name: '@hey-api/sdk', validator: true }, // requests and responses, with zod
    'zod',
  ],
});
