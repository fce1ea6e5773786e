import Database from 'better-sqlite3'

export const UNLIMITED = 2 ** 31 - 1

const RESERVATION = 24 * 60 * 60 * 1000
const PLANS = {
  free: [60, 1_000],
  pro: [300, 10_000],
  business: [1_000, 100_000],
  enterprise: [UNLIMITED, UNLIMITED]
}
const PETS = 'SELECT id, name, category_id AS categoryId, status FROM pets WHERE'

/**
 * One SQLite file on one connection, in the thread of the event loop, with prepared statements.
 * Ids and categories are 64 bits wide, so they are read as BigInt.
 */
export function openStore (path) {
  const db = new Database(path, { fileMustExist: true })
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('foreign_keys = ON')

  const select = (sql) => db.prepare(sql).safeIntegers()
  // Rows as arrays, because an object for each row would cost as much as reading it; and "+ 0",
  // because SQLite compiles a statement anew whenever a plain parameter of LIMIT is bound.
  const page = (filters) => select(`${PETS} ${filters} id > @after ORDER BY id LIMIT @count + 0`).raw()
  const pages = {
    all: page(''),
    status: page('status = @status AND'),
    category: page('category_id = @category AND'),
    both: page('category_id = @category AND status = @status AND')
  }
  const pet = select(`${PETS} id = ?`).raw()
  const inventory = db.prepare('SELECT status, pets FROM inventory').raw()
  const key = db.prepare(`
    SELECT k.id, k.plan, k.per_minute, k.per_day,
      min(coalesce(k.expires_at, 1e15), coalesce(t.expires_at, 1e15)) AS ends_at
    FROM api_key_tokens t JOIN api_keys k ON k.id = t.key_id
    WHERE t.digest = ? AND k.revoked_at IS NULL AND k.environment = 'production'`)
  const addPet = db.prepare('INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)')
  const reservePet = db.prepare(
    "UPDATE pets SET status = 'pending' WHERE id = ? AND status = 'available'")
  const addOrder = db.prepare(`
    INSERT INTO orders (pet_id, status, ship_date, placed_at, reserved_until)
    VALUES (?, 'placed', ?, ?, ?)`)

  return {
    close: () => db.close(),

    /** The first `count` pets that pass the filters, by id; `category` and `after` are BigInt. */
    listPets ({ status, category, after, count }) {
      const kind = category === undefined
        ? (status === undefined ? 'all' : 'status')
        : (status === undefined ? 'category' : 'both')
      return pages[kind].all({ status, category, after, count }).map(petOf)
    },

    getPet (id) {
      const row = pet.get(id)
      return row && petOf(row)
    },

    countPets: () => ({ available: 0, pending: 0, sold: 0, ...Object.fromEntries(inventory.all()) }),

    addPet ({ name, categoryId, status }) {
      const { lastInsertRowid: id } = addPet.run(name, categoryId, status)
      return { id, name, categoryId, status }
    },

    /** Reserve an available pet and return the order; or say in `refused` why it cannot be. */
    placeOrder: db.transaction((petId, shipDate) => {
      if (reservePet.run(petId).changes === 0) {
        return { refused: pet.get(petId) ? 'not available' : 'unknown' }
      }
      const now = Date.now()
      const end = now + RESERVATION
      const { lastInsertRowid: id } = addOrder.run(petId, shipDate, now, end)
      return {
        id,
        petId,
        quantity: 1,
        status: 'placed',
        complete: false,
        placedAt: new Date(now).toISOString(),
        reservedUntil: new Date(end).toISOString(),
        shipDate
      }
    }).immediate,

    /** The key of a token's SHA-256 digest; it ends at a time in milliseconds since the epoch. */
    findKey (digest) {
      const row = key.get(digest)
      if (row === undefined) return undefined
      const [perMinute, perDay] = PLANS[row.plan]
      return {
        id: row.id,
        perMinute: row.per_minute ?? perMinute,
        perDay: row.per_day ?? perDay,
        endsAt: row.ends_at
      }
    }
  }
}

function petOf ([id, name, categoryId, status]) {
  return { id, name, categoryId, status: status ?? undefined }
}
