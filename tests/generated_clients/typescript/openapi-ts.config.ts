import { defineConfig } from '@hey-api/openapi-ts';

export default defineConfig({
  input: process.env.PETSTORE_DOCUMENT!,
  output: { path: 'client', module: { extension: '.ts' } },
  plugins: [
    '@hey-api/client-fetch',
    '@hey-api/typescript',
    { name: '@hey-api/sdk', validator: true }, // requests and responses, with zod
    'zod',
  ],
});
