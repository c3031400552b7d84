package rest

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
)

const someKey = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"

// keyedOperations returns the operations that accept an Idempotency-Key.
func keyedOperations() []string {
	return []string{
		"createNamespace", "dropNamespace", "updateProperties", "createTable", "updateTable", "dropTable", "unregisterTable",
		"registerTable", "renameTable", "commitTransaction",
		"createView", "replaceView", "dropView", "registerView", "renameView",
	}
}

// Exactly the operations that change something read the key, and refuse a malformed one. The others
// ignore the header.
func TestOperationsThatTakeKeys(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.operation, func(t *testing.T) {
			t.Parallel()
			keyed := slices.Contains(keyedOperations(), s.operation)
			fake := &fakeCatalog{fail: moorage.Errorf(moorage.KindNoSuchTable, "no")}
			h := NewServer(TestConfig{Catalog: fake})
			plain := send(h, s.method, s.path, s.body)
			if len(fake.keys) > 0 {
				t.Fatal("a request without a key has one")
			}
			calls := len(fake.calls)
			with := send(h, s.method, s.path, s.body, "Idempotency-Key", someKey)
			if with.Code != plain.Code || with.Body.String() != plain.Body.String() {
				t.Errorf("answers %d %s with a key and %d %s without", with.Code, with.Body, plain.Code, plain.Body)
			}
			var want []catalog.Key
			if keyed {
				want = []catalog.Key{{ID: strings.ToLower(someKey), Warehouse: "w", Method: s.method, Path: s.path, Body: sha256.Sum256([]byte(s.body))}}
			}
			if !slices.Equal(fake.keys, want) {
				t.Errorf("keys are %v, want %v", fake.keys, want)
			}
			malformed := send(h, s.method, s.path, s.body, "Idempotency-Key", "once, please")
			if !keyed {
				if malformed.Code != plain.Code {
					t.Errorf("a key that it does not take is answered with %d", malformed.Code)
				}
				return
			}
			wantFailure(t, malformed, http.StatusBadRequest, "BadRequestException")
			if len(fake.keys) > 1 || len(fake.calls) != 2*calls {
				t.Errorf("a malformed key came through: %v", fake.calls)
			}
		})
	}
}

// The operations that accept a key are the ones in the specification, and createView, which the
// specification has forgotten. Java clients send a key with it.
func TestKeysAreTheSpecifications(t *testing.T) {
	t.Parallel()
	file := openAPI(t)
	if file == nil {
		return
	}
	for _, op := range NewServer(TestConfig{Catalog: &fakeCatalog{}}).operations() {
		parameters, _ := dig(file, file, "paths", op.path, strings.ToLower(op.method), "parameters").([]any)
		takes := slices.ContainsFunc(parameters, func(p any) bool {
			reference, ok := p.(map[string]any)
			return ok && reference["$ref"] == "#/components/parameters/idempotency-key"
		})
		if op.id == "createView" {
			takes = !takes
		}
		if takes != (op.mutate != nil) {
			t.Errorf("%s takes a key: %t, in the specification %t", op.id, op.mutate != nil, takes)
		}
	}
}

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		values []string
		want   string // the key; if empty, the request is refused unless there are no values
	}{
		{"none", nil, ""},
		{"upper case", []string{someKey}, strings.ToLower(someKey)},
		{"lower case", []string{strings.ToLower(someKey)}, strings.ToLower(someKey)},
		{"version 4", []string{"7d444840-9dc0-41d1-b245-5ffdce74fad2"}, "7d444840-9dc0-41d1-b245-5ffdce74fad2"},
		{"empty", []string{""}, ""},
		{"a text", []string{"abc"}, ""},
		{"without dashes", []string{strings.ReplaceAll(someKey, "-", "")}, ""},
		{"in braces", []string{"{" + someKey + "}"}, ""},
		{"as URN", []string{"urn:uuid:" + someKey}, ""},
		{"too long", []string{someKey + "0"}, ""},
		{"not hexadecimal", []string{strings.Replace(someKey, "F", "G", 1)}, ""},
		{"dashes elsewhere", []string{"017F22E279B0-7CC3-98C4--DC0C0C07398F"}, ""},
		{"twice", []string{someKey, someKey}, ""},
		{"two in one", []string{someKey + ", " + someKey}, ""},
	} {
		r := &http.Request{Header: http.Header{}}
		if row.values != nil {
			r.Header["Idempotency-Key"] = row.values
		}
		got, err := web.IdempotencyKey(r)
		if refused := row.want == "" && row.values != nil; got != row.want || (moorage.KindOf(err) == moorage.KindBadRequest) != refused {
			t.Errorf("%s: %q, %v; want %q", row.name, got, err, row.want)
		}
	}
}

// A key is bound to everything that distinguishes a request.
func TestWhatAKeyIsBoundTo(t *testing.T) {
	t.Parallel()
	base := sample{"", "DELETE", "/v1/w/namespaces/a/tables/t", "body"}
	seen := map[catalog.Key]string{}
	for name, change := range map[string]func(*sample){
		"base":      func(*sample) {},
		"warehouse": func(s *sample) { s.path = strings.Replace(s.path, "/w/", "/v/", 1) },
		"no prefix": func(s *sample) { s.path = strings.Replace(s.path, "/w/", "/", 1) },
		"spelling":  func(s *sample) { s.path = strings.Replace(s.path, "/a/", "/%61/", 1) },
		"query":     func(s *sample) { s.path += "?purgeRequested=true" },
		"body":      func(s *sample) { s.body = "other" },
	} {
		request := base
		change(&request)
		fake := &fakeCatalog{}
		send(NewServer(TestConfig{Catalog: fake}), request.method, request.path, request.body, "Idempotency-Key", someKey)
		if len(fake.keys) != 1 {
			t.Fatalf("%s: keys are %v", name, fake.keys)
		}
		if other, ok := seen[fake.keys[0]]; ok {
			t.Errorf("%s and %s are one request", name, other)
		}
		seen[fake.keys[0]] = name
	}
}

func TestLifetimeIsTold(t *testing.T) {
	t.Parallel()
	for lifetime, want := range map[time.Duration]string{
		30 * time.Minute: "PT30M", time.Hour: "PT1H", 24 * time.Hour: "PT24H", 90 * time.Minute: "PT1H30M", time.Second: "PT1S",
		10 * time.Second: "PT10S", time.Hour + 5*time.Second: "PT1H0M5S", 61 * time.Second: "PT1M1S",
	} {
		body := send(NewServer(TestConfig{Catalog: &fakeCatalog{}, IdempotencyLifetime: lifetime}), "GET", "/v1/config", "").Body.String()
		if !strings.Contains(body, `"idempotency-key-lifetime":"`+want+`"`) {
			t.Errorf("%s: %s", lifetime, body)
		}
	}
	if body := send(NewServer(TestConfig{Catalog: &fakeCatalog{}}), "GET", "/v1/config", "").Body.String(); strings.Contains(body, "idempotency") {
		t.Errorf("told without being asked to: %s", body)
	}
}
