// The pet store as a Fastify team would write it: JSON schemas check what comes in and serialise
// what goes out, better-sqlite3 runs prepared statements in the event loop's thread, and
// @fastify/rate-limit counts, once for the minute and once for the day. One process; every write
// commits for itself and is on disk before its response.
import { hash, randomBytes } from 'node:crypto'
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import { parse } from 'lossless-json'
import { INT64, newOrder, newPet, order, pageQuery, pet, pets } from './schemas.js'
import { openStore, UNLIMITED } from './store.js'

const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const INT64_MAX = 2n ** 63n - 1n
const KEY_LIFE = SECOND / 2
const ADDRESS_LIMIT = 300
const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const CODES = { 404: 'not_found', 413: 'content_too_large', 415: 'unsupported_media_type' }

class Refusal extends Error {
  constructor (statusCode, code, message) {
    super(message)
    this.statusCode = statusCode
    this.code = code
  }
}

const store = openStore(process.env.DATABASE)
const app = Fastify({
  bodyLimit: 64 * 1024,
  genReqId: requestId(),
  schemaErrorFormatter: refusalOf,
  frameworkErrors: answerError,
  ajv: {
    customOptions: {
      coerceTypes: false,
      removeAdditional: false,
      verbose: true,
      keywords: [{ keyword: 'int64', schema: false, validate: isInt64 }]
    }
  }
})
app.removeAllContentTypeParsers()
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseBody)
app.setErrorHandler(answerError)
app.get('/healthz', () => '')
await app.register(rateLimit, { global: false })
await app.register(api, { prefix: '/v1' })
await app.listen({ host: process.env.HOST, port: Number(process.env.PORT) })
process.once('SIGTERM', async () => {
  await app.close()
  store.close()
})

async function api (app) {
  const findKey = keyRing()
  const counted = { cache: 100_000 } // callers remembered
  const minute = app.createRateLimit({
    ...counted,
    max: (request) => request.key.perMinute,
    timeWindow: MINUTE,
    keyGenerator: (request) => request.key.id
  })
  const day = app.createRateLimit({
    ...counted,
    max: (request) => request.key.perDay,
    timeWindow: DAY,
    keyGenerator: (request) => `${request.key.id} ${Math.floor(Date.now() / DAY)}`
  })
  const address = app.createRateLimit({ ...counted, max: ADDRESS_LIMIT, timeWindow: MINUTE })

  app.decorateRequest('key', null)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    request.key = findKey(request.headers.authorization)
    if (request.key === undefined) {
      charge(reply, await address(request))
      reply.header('www-authenticate', 'Bearer realm="petstore"')
      const message = 'Authorization: expected Bearer and a valid API key'
      throw new Refusal(401, 'invalid_api_key', message)
    }
    const short = await minute(request)
    if (short.isExceeded) return charge(reply, short)
    const long = await day(request)
    long.ttl = DAY - Date.now() % DAY
    charge(reply, long.remaining <= short.remaining ? long : short)
  })
  app.setNotFoundHandler((request) => {
    throw new Refusal(404, 'not_found', `there is no ${request.method} ${request.url}`)
  })

  app.get('/pets', { schema: { querystring: pageQuery, response: { 200: pets } } }, (request, reply) => {
    const { limit, status, categoryId, cursor } = request.query
    const category = categoryId === undefined ? undefined : BigInt(categoryId)
    if (category !== undefined && !isInt64(category)) {
      throw new Refusal(400, 'invalid_parameter', `categoryId: expected ${INT64.description}`)
    }
    const after = cursor === undefined ? 0n : Buffer.from(cursor, 'base64url').readBigInt64BE()
    const found = store.listPets({ status, category, after, count: Number(limit) + 1 })
    if (found.length > limit) {
      found.pop()
      const next = new URLSearchParams({ ...request.query, cursor: encodeCursor(found.at(-1).id) })
      reply.header('link', `</v1/pets?${next}>; rel="next"`)
    }
    reply.send(found)
  })

  app.get('/pets/:petId', { schema: { response: { 200: pet } } }, (request, reply) => {
    const { petId } = request.params
    const found = /^\d{1,19}$/.test(petId) && BigInt(petId) <= INT64_MAX && store.getPet(BigInt(petId))
    if (!found) throw new Refusal(404, 'not_found', 'there is no pet of this id')
    reply.send(found)
  })

  app.post('/pets', { schema: { body: newPet, response: { 201: pet } } }, (request, reply) => {
    reply.code(201).send(store.addPet(request.body))
  })

  app.get('/store/inventory', (request, reply) => {
    reply.send(store.countPets())
  })

  const placeOrder = { schema: { body: newOrder, response: { 201: order } } }
  app.post('/store/orders', placeOrder, (request, reply) => {
    const { petId, shipDate } = request.body
    const placed = store.placeOrder(petId, shipDate)
    if (placed.refused === 'unknown') {
      throw new Refusal(400, 'unknown_pet', `petId: there is no pet ${petId}`)
    }
    if (placed.refused) throw new Refusal(409, 'pet_not_available', `pet ${petId} is not available`)
    reply.code(201).send(placed)
  })
}

/** Say in the headers what is left of a window; refuse what is over its limit. */
function charge (reply, { max, remaining, ttl, isExceeded }) {
  const now = Date.now()
  const reset = Math.ceil((now + ttl) / SECOND)
  reply.header('x-ratelimit-limit', max)
  reply.header('x-ratelimit-remaining', max === UNLIMITED ? UNLIMITED : remaining)
  reply.header('x-ratelimit-reset', reset)
  if (isExceeded) {
    const wait = Math.max(1, Math.ceil(reset - now / SECOND))
    reply.header('retry-after', wait)
    const message = `the limit of ${max} requests is reached: wait ${wait} seconds`
    throw new Refusal(429, 'rate_limit_exceeded', message)
  }
}

/** Find the keys of tokens; a key is remembered so briefly that a revoked one ends within a second. */
function keyRing () {
  const known = new Map()
  setInterval(() => known.clear(), KEY_LIFE).unref()
  return (authorization) => {
    const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
    if (token === undefined) return undefined
    const digest = hash('sha256', token, 'hex')
    let key = known.get(digest)
    if (key === undefined) {
      key = store.findKey(Buffer.from(digest, 'hex'))
      if (key === undefined) return undefined
      known.set(digest, key)
    }
    return Date.now() < key.endsAt ? key : undefined
  }
}

function requestId () {
  const started = randomBytes(6).toString('hex')
  let requests = 0
  return ({ headers }) => {
    const given = headers['x-request-id']
    return given !== undefined && /^[\w.-]{1,64}$/.test(given) ? given : `${started}-${++requests}`
  }
}

/** Parse JSON; what is an integer and beyond the integers of Number becomes a BigInt. */
function parseBody (request, body, done) {
  try {
    done(null, parse(UTF_8.decode(body), null, (digits) => {
      const number = Number(digits)
      return Number.isSafeInteger(number) || !/^-?\d+$/.test(digits) ? number : BigInt(digits)
    }))
  } catch {
    done(new Refusal(400, 'invalid_body', 'the body: expected a JSON object in UTF-8'))
  }
}

function isInt64 (value) {
  return Number.isSafeInteger(value) || (typeof value === 'bigint' && BigInt.asIntN(64, value) === value)
}

function encodeCursor (id) {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(id)
  return bytes.toString('base64url')
}

/** Turn the first error of Ajv into words; the schemas tell what was expected. */
function refusalOf ([{ instancePath, params, parentSchema }], part) {
  const code = part === 'body' ? 'invalid_body' : 'invalid_parameter'
  const missing = params.missingProperty
  const name = missing ?? instancePath.slice(1)
  const { description } = missing ? parentSchema.properties[missing] : parentSchema
  return new Refusal(400, code, `${name || `the ${part}`}: expected ${description}`)
}

function answerError (error, request, reply) {
  const status = error.statusCode ?? 500
  if (status >= 500) {
    console.error(error)
    reply.code(500).send({ code: 'internal_error', message: 'the service failed', status: 500 })
    return
  }
  const code = error instanceof Refusal ? error.code : CODES[status] ?? 'invalid_request'
  reply.code(status).send({ code, message: error.message, status })
}
