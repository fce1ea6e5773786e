package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	reservation = 24 * time.Hour
	never       = int64(1<<63 - 1)
)

// store keeps animals, orders and keys. Every change is on disk when a method returns.
type store interface {
	// key returns the key of a token's digest, or nil.
	key(digest []byte) (*key, error)
	// pets returns one animal more than the page takes, if there is one.
	pets(p page) ([]pet, error)
	pet(id int64) (pet, error)
	inventory() (inventory, error)
	// add stores an animal and gives it its id.
	add(new *pet) error
	// place stores an order and gives it its id; it reserves the animal, which must be available.
	place(new *order) error
	close()
}

// openStore opens the SQLite file at a path, or the PostgreSQL database at a URL.
func openStore(database string) (store, error) {
	if strings.HasPrefix(database, "postgresql://") {
		return openPostgres(database)
	}
	return openSQLite(database)
}

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

// shipDateText returns the date of shipping as it is stored, or nil.
func (o *order) shipDateText() *string {
	if o.ShipDate == nil {
		return nil
	}
	text := o.ShipDate.Format(time.RFC3339Nano)
	return &text
}

type inventory struct {
	Available int64 `json:"available"`
	Pending   int64 `json:"pending"`
	Sold      int64 `json:"sold"`
}

func (i *inventory) set(status string, pets int64) {
	switch status {
	case "available":
		i.Available = pets
	case "pending":
		i.Pending = pets
	case "sold":
		i.Sold = pets
	}
}

// page says which animals a list holds; no status and no category filter nothing.
type page struct {
	status   string
	category *int64
	after    int64
	limit    int
}

// key is what a request needs of an API key; its end is in milliseconds since the epoch.
type key struct {
	name   string
	limits limits
	end    int64
}

// keyRow is a key as the database has it.
type keyRow struct {
	id                int64
	plan              string
	perMinute, perDay *int64
	end               int64
}

func (r *keyRow) columns() []any {
	return []any{&r.id, &r.plan, &r.perMinute, &r.perDay, &r.end}
}

func (r *keyRow) key() *key {
	found := &key{"key " + strconv.FormatInt(r.id, 10), plans[r.plan], r.end}
	if r.perMinute != nil {
		found.limits.perMinute = *r.perMinute
	}
	if r.perDay != nil {
		found.limits.perDay = *r.perDay
	}
	return found
}
