package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

const (
	postgresConnections = 10

	selectPets   = "SELECT id, name, category_id, coalesce(status, '') FROM pets WHERE "
	next         = " ORDER BY id LIMIT "
	listAll      = selectPets + "id > $1" + next + "$2"
	listStatus   = selectPets + "status = $3 AND id > $1" + next + "$2"
	listCategory = selectPets + "category_id = $3 AND id > $1" + next + "$2"
	listBoth     = selectPets + "category_id = $3 AND status = $4 AND id > $1" + next + "$2"
	getPet       = selectPets + "id = $1"
	getInventory = "SELECT status, sum(pets)::bigint FROM inventory GROUP BY status"
	getKey       = "SELECT k.id, k.plan, k.per_minute, k.per_day," +
		" least(k.expires_at, t.expires_at, $2)" +
		" FROM api_key_tokens t JOIN api_keys k ON k.id = t.key_id" +
		" WHERE t.digest = $1 AND k.revoked_at IS NULL AND k.environment = 'production'"
	addPet     = "INSERT INTO pets (name, category_id, status) VALUES ($1, $2, nullif($3, '')) RETURNING id"
	reservePet = "UPDATE pets SET status = 'pending' WHERE id = $1 AND status = 'available'"
	findPet    = "SELECT 1 FROM pets WHERE id = $1"
	addOrder   = "INSERT INTO orders (pet_id, status, ship_date, placed_at, reserved_until)" +
		" VALUES ($1, 'placed', $2, $3, $4) RETURNING id"
)

// postgresStore is a PostgreSQL database. pgx prepares each statement once on each connection.
type postgresStore struct{ pool *pgxpool.Pool }

func openPostgres(url string) (*postgresStore, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = postgresConnections
	pool, err := pgxpool.ConnectConfig(context.Background(), config)
	return &postgresStore{pool}, err
}

func (s *postgresStore) close() { s.pool.Close() }

func (s *postgresStore) key(digest []byte) (*key, error) {
	var row keyRow
	err := s.pool.QueryRow(context.Background(), getKey, digest, never).Scan(row.columns()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return row.key(), err
}

func (s *postgresStore) pets(p page) ([]pet, error) {
	text, values := listAll, []any{p.after, p.limit + 1}
	switch {
	case p.status != "" && p.category != nil:
		text, values = listBoth, append(values, *p.category, p.status)
	case p.status != "":
		text, values = listStatus, append(values, p.status)
	case p.category != nil:
		text, values = listCategory, append(values, *p.category)
	}
	rows, err := s.pool.Query(context.Background(), text, values...)
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

func (s *postgresStore) pet(id int64) (pet, error) {
	var one pet
	err := s.pool.QueryRow(context.Background(), getPet, id).Scan(
		&one.ID, &one.Name, &one.CategoryID, &one.Status)
	if errors.Is(err, pgx.ErrNoRows) {
		return one, errUnknown
	}
	return one, err
}

func (s *postgresStore) inventory() (inventory, error) {
	var counts inventory
	rows, err := s.pool.Query(context.Background(), getInventory)
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

func (s *postgresStore) add(new *pet) error {
	return s.pool.QueryRow(context.Background(), addPet, new.Name, new.CategoryID, new.Status).
		Scan(&new.ID)
}

func (s *postgresStore) place(new *order) error {
	return s.pool.BeginFunc(context.Background(), func(transaction pgx.Tx) error {
		tag, err := transaction.Exec(context.Background(), reservePet, new.PetID)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return whyNotReserved(transaction, new.PetID)
		}
		return transaction.QueryRow(context.Background(), addOrder, new.PetID, new.shipDateText(),
			new.PlacedAt.UnixMilli(), new.ReservedUntil.UnixMilli()).Scan(&new.ID)
	})
}

func whyNotReserved(transaction pgx.Tx, petID int64) error {
	var found int
	err := transaction.QueryRow(context.Background(), findPet, petID).Scan(&found)
	if errors.Is(err, pgx.ErrNoRows) {
		return errUnknown
	} else if err != nil {
		return err
	}
	return errNotAvailable
}
