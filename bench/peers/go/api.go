package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	maxBody      = 64 << 10
	defaultLimit = 20
	maxLimit     = 100
	maxName      = 255
)

// Callers without a valid key are counted by their address.
var addressLimits = limits{300, unlimited}

var (
	jsonType  = []string{"application/json"}
	requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

// failure is the Error body of the interface, and an error.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

func (f *failure) Error() string { return f.Message }

func refuse(status int, code, format string, values ...any) error {
	return &failure{code, fmt.Sprintf(format, values...), status}
}

func invalidParameter(name, expected string) error {
	return refuse(http.StatusBadRequest, "invalid_parameter", "%s: expected %s", name, expected)
}

func invalidBody(name, expected string) error {
	return refuse(http.StatusBadRequest, "invalid_body", "%s: expected %s", name, expected)
}

type api struct {
	store    store
	keys     *keyRing
	limiter  limiter
	started  string
	requests atomic.Uint64
}

func newAPI(s store, l limiter) *api {
	return &api{
		store:   s,
		keys:    newKeyRing(s),
		limiter: l,
		started: strconv.FormatInt(time.Now().UnixNano(), 36),
	}
}

// ServeHTTP responds to a request; it alone writes responses and errors.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["X-Request-Id"] = []string{a.requestID(r)}
	header["Content-Type"] = jsonType
	status, content, err := a.respond(w, r)
	if err != nil {
		var refused *failure
		if !errors.As(err, &refused) {
			log.Printf("%s %s: %v", r.Method, r.URL.Path, err)
			refused = &failure{"internal_error", "the service failed", http.StatusInternalServerError}
		}
		status, content = refused.Status, refused
	}
	body, err := json.Marshal(content)
	if err != nil {
		log.Print(err)
	}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}

func (a *api) requestID(r *http.Request) string {
	if given := r.Header.Get("X-Request-Id"); given != "" && requestID.MatchString(given) {
		return given
	}
	return a.started + "-" + strconv.FormatUint(a.requests.Add(1), 36)
}

func (a *api) respond(w http.ResponseWriter, r *http.Request) (int, any, error) {
	if err := a.admit(w, r); err != nil {
		return 0, nil, err
	}
	path := r.URL.Path
	switch {
	case path == "/v1/pets" && reads(r):
		return a.listPets(w, r)
	case path == "/v1/pets" && r.Method == http.MethodPost:
		return a.createPet(w, r)
	case strings.HasPrefix(path, "/v1/pets/") && reads(r):
		return a.getPet(strings.TrimPrefix(path, "/v1/pets/"))
	case path == "/v1/store/inventory" && reads(r):
		counts, err := a.store.inventory()
		return http.StatusOK, counts, err
	case path == "/v1/store/orders" && r.Method == http.MethodPost:
		return a.placeOrder(w, r)
	}
	return 0, nil, refuse(http.StatusNotFound, "not_found", "there is no %s %s", r.Method, path)
}

func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// admit checks the key of a request and counts it, by its key or else by its address.
func (a *api) admit(w http.ResponseWriter, r *http.Request) error {
	now := time.Now().UnixMilli()
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var known *key
	if strings.EqualFold(scheme, "Bearer") && token != "" {
		var err error
		if known, err = a.keys.find(token, now); err != nil {
			return err
		}
	}
	if known == nil {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if err := a.count(w, "address "+host, addressLimits, now); err != nil {
			return err
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="petstore"`)
		return refuse(http.StatusUnauthorized, "invalid_api_key",
			"Authorization: expected Bearer and a valid API key")
	}
	return a.count(w, known.name, known.limits, now)
}

// count charges a request to its caller and says in the headers what is left.
func (a *api) count(w http.ResponseWriter, caller string, granted limits, now int64) error {
	left, admitted, err := a.limiter.take(caller, granted, now)
	if err != nil {
		return err
	}
	header := w.Header()
	header["X-Ratelimit-Limit"] = []string{strconv.FormatInt(left.limit, 10)}
	header["X-Ratelimit-Remaining"] = []string{strconv.FormatInt(left.remaining, 10)}
	header["X-Ratelimit-Reset"] = []string{strconv.FormatInt(left.reset, 10)}
	if admitted {
		return nil
	}
	wait := (left.reset*1000 - now + 999) / 1000
	header.Set("Retry-After", strconv.FormatInt(wait, 10))
	return refuse(http.StatusTooManyRequests, "rate_limit_exceeded",
		"the limit of %d requests is reached: wait %d seconds", left.limit, wait)
}

func (a *api) listPets(w http.ResponseWriter, r *http.Request) (int, any, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return 0, nil, invalidParameter("the query", "pairs of name=value")
	}
	wanted, err := parsePage(query)
	if err != nil {
		return 0, nil, err
	}
	found, err := a.store.pets(wanted)
	if err != nil {
		return 0, nil, err
	}
	if len(found) > wanted.limit {
		found = found[:wanted.limit]
		query.Set("cursor", encodeCursor(found[len(found)-1].ID))
		w.Header()["Link"] = []string{"<" + r.URL.Path + "?" + query.Encode() + `>; rel="next"`}
	}
	return http.StatusOK, found, nil
}

func parsePage(query url.Values) (page, error) {
	wanted := page{limit: defaultLimit}
	for name, values := range query {
		text := values[0]
		switch name {
		case "limit":
			limit, err := strconv.ParseUint(text, 10, 31)
			if err != nil || limit < 1 || limit > maxLimit {
				return wanted, invalidParameter(name, "an integer from 1 to 100, in plain digits")
			}
			wanted.limit = int(limit)
		case "status":
			if !isStatus(text) {
				return wanted, invalidParameter(name, "one of 'available', 'pending', 'sold'")
			}
			wanted.status = text
		case "categoryId":
			category, err := strconv.ParseInt(text, 10, 64)
			if err != nil || text[0] == '+' {
				return wanted, invalidParameter(name, "an integer from -2^63 to 2^63 - 1")
			}
			wanted.category = &category
		case "cursor":
			after, err := decodeCursor(text)
			if err != nil {
				return wanted, invalidParameter(name, "the cursor of a Link header, unchanged")
			}
			wanted.after = after
		default:
			continue
		}
		if len(values) > 1 {
			return wanted, invalidParameter(name, "it once")
		}
	}
	return wanted, nil
}

func isStatus(text string) bool {
	return text == "available" || text == "pending" || text == "sold"
}

func encodeCursor(id int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(id)))
}

func decodeCursor(text string) (int64, error) {
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(bytes) != 8 {
		return 0, errors.New("not a cursor")
	}
	return int64(binary.BigEndian.Uint64(bytes)), nil
}

func (a *api) getPet(text string) (int, any, error) {
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, nil, refuse(http.StatusNotFound, "not_found", "an id is an integer in plain digits")
	}
	found, err := a.store.pet(int64(id))
	if errors.Is(err, errUnknown) {
		return 0, nil, refuse(http.StatusNotFound, "not_found", "there is no pet %d", id)
	}
	return http.StatusOK, found, err
}

func (a *api) createPet(w http.ResponseWriter, r *http.Request) (int, any, error) {
	members, err := readObject(w, r)
	if err != nil {
		return 0, nil, err
	}
	var new pet
	if new.Name, err = text(members["name"]); err != nil || !isName(new.Name) {
		return 0, nil, invalidBody("name", "a string of 1 to 255 characters, not only white space")
	}
	if new.CategoryID, err = integer(members["categoryId"]); err != nil {
		return 0, nil, invalidBody("categoryId", "an integer from -2^63 to 2^63 - 1")
	}
	if given, ok := members["status"]; ok {
		if new.Status, err = text(given); err != nil || !isStatus(new.Status) {
			return 0, nil, invalidBody("status", "one of 'available', 'pending', 'sold'")
		}
	}
	return http.StatusCreated, &new, a.store.add(&new)
}

func (a *api) placeOrder(w http.ResponseWriter, r *http.Request) (int, any, error) {
	members, err := readObject(w, r)
	if err != nil {
		return 0, nil, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	new := order{Quantity: 1, Status: "placed", PlacedAt: now, ReservedUntil: now.Add(reservation)}
	if new.PetID, err = integer(members["petId"]); err != nil {
		return 0, nil, invalidBody("petId", "an integer from -2^63 to 2^63 - 1")
	}
	if given, ok := members["quantity"]; ok && string(given) != "1" {
		return 0, nil, invalidBody("quantity", "1, for every animal is one of a kind")
	}
	if given, ok := members["shipDate"]; ok {
		if err := json.Unmarshal(given, &new.ShipDate); err != nil || new.ShipDate == nil {
			return 0, nil, invalidBody("shipDate", "a date and time as in 2026-12-24T10:00:00Z")
		}
	}
	switch err := a.store.place(&new); {
	case errors.Is(err, errUnknown):
		return 0, nil, refuse(http.StatusBadRequest, "unknown_pet",
			"petId: expected an animal of this store; there is no pet %d", new.PetID)
	case errors.Is(err, errNotAvailable):
		return 0, nil, refuse(http.StatusConflict, "pet_not_available",
			"pet %d is not available", new.PetID)
	default:
		return http.StatusCreated, &new, err
	}
}

// readObject returns the members of the JSON object in the body; each is valid JSON, undecoded,
// because a struct would take null for absent and names in another case.
func readObject(w http.ResponseWriter, r *http.Request) (map[string]json.RawMessage, error) {
	if given := r.Header.Get("Content-Type"); given != "" {
		if mediaType, _, err := mime.ParseMediaType(given); err != nil || mediaType != jsonType[0] {
			return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type",
				"Content-Type: expected application/json")
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, refuse(http.StatusRequestEntityTooLarge, "content_too_large",
				"the body: expected at most %d bytes", maxBody)
		}
		return nil, refuse(http.StatusBadRequest, "incomplete_body", "the body: expected whole")
	}
	var members map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &members) != nil || members == nil {
		return nil, invalidBody("the body", "a JSON object in UTF-8")
	}
	return members, nil
}

func text(member json.RawMessage) (string, error) {
	var value *string
	if err := json.Unmarshal(member, &value); err != nil || value == nil {
		return "", errors.New("not a string")
	}
	return *value, nil
}

// integer reads what is valid JSON, so that nothing but an integer passes ParseInt.
func integer(member json.RawMessage) (int64, error) {
	return strconv.ParseInt(string(member), 10, 64)
}

func isName(name string) bool {
	return utf8.RuneCountInString(name) <= maxName &&
		strings.TrimSpace(name) != "" && !strings.ContainsRune(name, 0)
}
