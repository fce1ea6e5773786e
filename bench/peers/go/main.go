// The pet store as a Go team would write it: net/http, encoding/json and prepared statements. It
// runs on SQLite (database/sql, mattn/go-sqlite3) and counts in memory, or on PostgreSQL (pgx) and
// counts in Redis (redigo). One process on all cores; each write is on disk before its response.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	store, err := openStore(os.Getenv("DATABASE"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.close()
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	})
	mux.Handle("/", newAPI(store, newLimiter(os.Getenv("REDIS"))))
	server := &http.Server{
		Addr:              net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")),
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	stopped := make(chan error)
	go func() {
		<-stop.Done()
		timeout, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(timeout)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	if err := <-stopped; err != nil {
		log.Print(err)
	}
}
