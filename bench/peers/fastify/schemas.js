// What the interface takes and gives, as JSON Schema. A description completes "expected …".
const STATUS = {
  enum: ['available', 'pending', 'sold'],
  description: "one of 'available', 'pending', 'sold'"
}
export const INT64 = { int64: true, description: 'an integer from -2^63 to 2^63 - 1' }

export const pageQuery = {
  type: 'object',
  properties: {
    limit: {
      type: 'string',
      pattern: '^0*([1-9][0-9]?|100)$',
      default: '20',
      description: 'an integer from 1 to 100, in plain digits'
    },
    status: { type: 'string', ...STATUS },
    categoryId: { type: 'string', pattern: '^-?[0-9]{1,19}$', description: INT64.description },
    cursor: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{11}$',
      description: 'the cursor of a Link header, unchanged'
    }
  }
}

export const newPet = {
  type: 'object',
  description: 'a JSON object',
  required: ['name', 'categoryId'],
  properties: {
    name: {
      type: 'string',
      maxLength: 255,
      // Something other than white space, no U+0000 and no half of a surrogate pair.
      pattern: '^\\s*[^\\s\\0\\ud800-\\udfff][^\\0\\ud800-\\udfff]*$',
      description: 'a string of 1 to 255 characters, not only white space and without U+0000'
    },
    categoryId: INT64,
    status: { type: 'string', ...STATUS }
  }
}

export const newOrder = {
  type: 'object',
  description: 'a JSON object',
  required: ['petId'],
  properties: {
    petId: INT64,
    quantity: { const: 1, description: '1, for every pet is one of a kind' },
    shipDate: {
      type: 'string',
      format: 'date-time',
      description: 'a date and time as in 2026-12-24T10:00:00Z'
    }
  }
}

export const pet = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    categoryId: { type: 'integer' },
    status: { type: 'string' }
  }
}

export const pets = { type: 'array', items: pet }

export const order = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    petId: { type: 'integer' },
    quantity: { type: 'integer' },
    status: { type: 'string' },
    complete: { type: 'boolean' },
    placedAt: { type: 'string' },
    reservedUntil: { type: 'string' },
    shipDate: { type: 'string' }
  }
}
