package main

import (
	"database/sql"
	"errors"
	"net/url"
	"runtime"
	"sync"

	_ "github.com/mattn/go-sqlite3"
)

const (
	dsnOptions = "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=on&_busy_timeout=5000" +
		"&_mutex=no&_secure_delete=off"
	minReaders = 4
)

// sqliteStore is one SQLite file (WAL): one connection writes, a few others read meanwhile.
type sqliteStore struct {
	writer, reader *sql.DB
	// database/sql hands out connections in no order; a mutex is fair.
	writing sync.Mutex

	listAll, listStatus, listCategory, listBoth *sql.Stmt
	getPet, getInventory, getKey                *sql.Stmt
	addPet, reservePet, findPet, addOrder       *sql.Stmt
}

func openSQLite(path string) (*sqliteStore, error) {
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
	if readers < minReaders {
		readers = minReaders
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
	s := &sqliteStore{
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

func (s *sqliteStore) close() {
	s.reader.Close()
	s.writer.Close()
}

func (s *sqliteStore) key(digest []byte) (*key, error) {
	var row keyRow
	err := s.getKey.QueryRow(digest, never).Scan(row.columns()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return row.key(), err
}

func (s *sqliteStore) pets(p page) ([]pet, error) {
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

func (s *sqliteStore) pet(id int64) (pet, error) {
	var one pet
	err := s.getPet.QueryRow(id).Scan(&one.ID, &one.Name, &one.CategoryID, &one.Status)
	if errors.Is(err, sql.ErrNoRows) {
		return one, errUnknown
	}
	return one, err
}

func (s *sqliteStore) inventory() (inventory, error) {
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
		counts.set(status, pets)
	}
	return counts, rows.Err()
}

func (s *sqliteStore) add(new *pet) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	result, err := s.addPet.Exec(new.Name, new.CategoryID, new.Status)
	if err != nil {
		return err
	}
	new.ID, err = result.LastInsertId()
	return err
}

func (s *sqliteStore) place(new *order) error {
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
	result, err = transaction.Stmt(s.addOrder).Exec(
		new.PetID, new.shipDateText(), new.PlacedAt.UnixMilli(), new.ReservedUntil.UnixMilli())
	if err != nil {
		return err
	}
	if new.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	return transaction.Commit()
}
