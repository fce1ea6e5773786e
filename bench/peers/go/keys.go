package main

import (
	"crypto/sha256"
	"sync"
	"time"
)

const keyLife = 500 * time.Millisecond

// keyRing finds the key of a token, and remembers it for so short a time that a key which is
// revoked is refused within a second.
type keyRing struct {
	store store
	mutex sync.RWMutex
	known map[[sha256.Size]byte]*key
}

func newKeyRing(s store) *keyRing {
	ring := &keyRing{store: s}
	ring.forget()
	go func() {
		for range time.Tick(keyLife) {
			ring.forget()
		}
	}()
	return ring
}

// find returns the key of a token if it is good at now, or else nil.
func (r *keyRing) find(token string, now int64) (*key, error) {
	digest := sha256.Sum256([]byte(token))
	r.mutex.RLock()
	known := r.known
	found, ok := known[digest]
	r.mutex.RUnlock()
	if !ok {
		var err error
		if found, err = r.store.key(digest[:]); found == nil || err != nil {
			return nil, err
		}
		r.mutex.Lock()
		known[digest] = found
		r.mutex.Unlock()
	}
	if now >= found.end {
		return nil, nil
	}
	return found, nil
}

func (r *keyRing) forget() {
	r.mutex.Lock()
	r.known = map[[sha256.Size]byte]*key{}
	r.mutex.Unlock()
}
