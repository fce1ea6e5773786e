package main

import (
	"database/sql"
	"errors"
	"net/url"
	"runtime"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

const (
	dsnOptions = "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=on&_busy_timeout=5000" +
		"&_mutex=no&_secure_delete=off"
	reservation = 24 * time.Hour
	never       = int64(1<<63 - 1)

	fewestReaders = 4
)

var (
	errUnknown      = errors.New("there is none")
	errNotAvailable = errors.New("it is not available")
)

var plans = map[string]limits{
	"free":       {60, 1_000},
	"pro":        {300, 10_000},
	"business":   {1_000, 100_000},
	"enterprise": {unlimited, unlimited},
}

type pet struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     string `json:"status,omitempty"`
}

type order struct {
	ID            int64      `json:"id"`
	PetID         int64      `json:"petId"`
	Quantity      int        `json:"quantity"`
	Status        string     `json:"status"`
	Complete      bool       `json:"complete"`
	PlacedAt      time.Time  `json:"placedAt"`
	ReservedUntil time.Time  `json:"reservedUntil"`
	ShipDate      *time.Time `json:"shipDate,omitempty"`
}

type inventory struct {
	Available int64 `json:"available"`
	Pending   int64 `json:"pending"`
	Sold      int64 `json:"sold"`
}

// page says which animals a list holds; no status and no category filter nothing.
type page struct {
	status   string
	category *int64
	after    int64
	limit    int
}

// key is what a request needs of an API key; it ends at a time in milliseconds since the epoch.
type key struct {
	name   string
	limits limits
	end    int64
}

// store is one SQLite file (WAL): one connection writes, a few others read meanwhile.
type store struct {
	writer, reader *sql.DB
	// Who waits for a connection of database/sql gets it in no order; a mutex is fair.
	writing sync.Mutex

	listAll, listStatus, listCategory, listBoth *sql.Stmt
	getPet, getInventory, getKey                *sql.Stmt
	addPet, reservePet, findPet, addOrder       *sql.Stmt
}

func openStore(path string) (*store, error) {
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + dsnOptions
	writer, err := sql.Open("sqlite3", name+"&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	reader, err := sql.Open("sqlite3", name+"&_query_only=on")
	if err != nil {
		return nil, err
	}
	readers := runtime.NumCPU()
	if readers < fewestReaders {
		readers = fewestReaders
	}
	reader.SetMaxOpenConns(readers)
	reader.SetMaxIdleConns(readers)

	prepare := func(db *sql.DB, text string) *sql.Stmt {
		if err != nil {
			return nil
		}
		var statement *sql.Stmt
		statement, err = db.Prepare(text)
		return statement
	}
	const pets = "SELECT id, name, category_id, coalesce(status, '') FROM pets WHERE "
	const next = "id > ? ORDER BY id LIMIT ?"
	s := &store{
		writer: writer,
		reader: reader,

		listAll:      prepare(reader, pets+next),
		listStatus:   prepare(reader, pets+"status = ? AND "+next),
		listCategory: prepare(reader, pets+"category_id = ? AND "+next),
		listBoth:     prepare(reader, pets+"category_id = ? AND status = ? AND "+next),
		getPet:       prepare(reader, pets+"id = ?"),
		getInventory: prepare(reader, "SELECT status, pets FROM inventory"),
		getKey: prepare(reader, "SELECT k.id, k.plan, k.per_minute, k.per_day,"+
			" min(coalesce(k.expires_at, ?2), coalesce(t.expires_at, ?2))"+
			" FROM api_key_tokens t JOIN api_keys k ON k.id = t.key_id"+
			" WHERE t.digest = ?1 AND k.revoked_at IS NULL AND k.environment = 'production'"),

		addPet: prepare(writer,
			"INSERT INTO pets (name, category_id, status) VALUES (?, ?, nullif(?, ''))"),
		reservePet: prepare(writer,
			"UPDATE pets SET status = 'pending' WHERE id = ? AND status = 'available'"),
		findPet: prepare(writer, "SELECT 1 FROM pets WHERE id = ?"),
		addOrder: prepare(writer, "INSERT INTO orders"+
			" (pet_id, status, ship_date, placed_at, reserved_until) VALUES (?, 'placed', ?, ?, ?)"),
	}
	return s, err
}

func (s *store) close() {
	s.reader.Close()
	s.writer.Close()
}

// key returns the key of a token's digest, or nil.
func (s *store) key(digest []byte) (*key, error) {
	var found key
	var id, plan string
	var perMinute, perDay sql.NullInt64
	err := s.getKey.QueryRow(digest, never).Scan(&id, &plan, &perMinute, &perDay, &found.end)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	found.name, found.limits = "key "+id, plans[plan]
	if perMinute.Valid {
		found.limits.perMinute = perMinute.Int64
	}
	if perDay.Valid {
		found.limits.perDay = perDay.Int64
	}
	return &found, err
}

// pets returns one animal more than the page takes, if there is one.
func (s *store) pets(p page) ([]pet, error) {
	var rows *sql.Rows
	var err error
	switch count := p.limit + 1; {
	case p.status != "" && p.category != nil:
		rows, err = s.listBoth.Query(*p.category, p.status, p.after, count)
	case p.status != "":
		rows, err = s.listStatus.Query(p.status, p.after, count)
	case p.category != nil:
		rows, err = s.listCategory.Query(*p.category, p.after, count)
	default:
		rows, err = s.listAll.Query(p.after, count)
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make([]pet, 0, p.limit+1)
	for rows.Next() {
		var one pet
		if err := rows.Scan(&one.ID, &one.Name, &one.CategoryID, &one.Status); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, rows.Err()
}

func (s *store) pet(id int64) (pet, error) {
	var one pet
	err := s.getPet.QueryRow(id).Scan(&one.ID, &one.Name, &one.CategoryID, &one.Status)
	if errors.Is(err, sql.ErrNoRows) {
		return one, errUnknown
	}
	return one, err
}

func (s *store) inventory() (inventory, error) {
	var counts inventory
	rows, err := s.getInventory.Query()
	if err != nil {
		return counts, err
	}
	defer rows.Close()
	for rows.Next() {
		var status string
		var pets int64
		if err := rows.Scan(&status, &pets); err != nil {
			return counts, err
		}
		switch status {
		case "available":
			counts.Available = pets
		case "pending":
			counts.Pending = pets
		case "sold":
			counts.Sold = pets
		}
	}
	return counts, rows.Err()
}

// add stores an animal and gives it its id.
func (s *store) add(new *pet) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	result, err := s.addPet.Exec(new.Name, new.CategoryID, new.Status)
	if err != nil {
		return err
	}
	new.ID, err = result.LastInsertId()
	return err
}

// place stores an order and gives it its id; its animal, which must be available, is reserved.
func (s *store) place(new *order) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	transaction, err := s.writer.Begin()
	if err != nil {
		return err
	}
	defer transaction.Rollback()
	result, err := transaction.Stmt(s.reservePet).Exec(new.PetID)
	if err != nil {
		return err
	}
	if reserved, err := result.RowsAffected(); err != nil {
		return err
	} else if reserved == 0 {
		var found int
		switch err := transaction.Stmt(s.findPet).QueryRow(new.PetID).Scan(&found); {
		case errors.Is(err, sql.ErrNoRows):
			return errUnknown
		case err != nil:
			return err
		}
		return errNotAvailable
	}
	var shipDate *string
	if new.ShipDate != nil {
		text := new.ShipDate.Format(time.RFC3339Nano)
		shipDate = &text
	}
	result, err = transaction.Stmt(s.addOrder).Exec(
		new.PetID, shipDate, new.PlacedAt.UnixMilli(), new.ReservedUntil.UnixMilli())
	if err != nil {
		return err
	}
	if new.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	return transaction.Commit()
}
