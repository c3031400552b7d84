package identity

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"moorage"
)

// line is a connection of a client to the fixture's server.
type line struct {
	f   *fixture
	ctx context.Context
}

func (f *fixture) connect() line { return line{f, WithConnection(f.t.Context())} }

// ask authenticates a request on the connection. It returns the number of key lookups for the
// request.
func (l line) ask(credential string) (caller moorage.Caller, checks int, err error) {
	r := httptest.NewRequestWithContext(l.ctx, "GET", "/v1/config", nil)
	r.RemoteAddr = "192.0.2.1:7"
	r.Header.Set("Authorization", credential)
	before := l.f.records.checked()
	caller, err = l.f.Authenticate(r)
	return caller, l.f.records.checked() - before, err
}

func (f *fakeRecords) checked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checks
}

// change edits a key, as a command would.
func (f *fakeRecords) change(id string, change func(*APIKey)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := f.keys[id]
	change(&key)
	f.keys[id] = key
	f.epoch++
}

// A key, or a token for a key, is checked once for all requests on a connection, and again after a
// change of the policy.
func TestConnectionChecksOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.records.epoch = 1
	key := f.key("key:etl", "writers")
	secret := key.Text[len(keyPrefix)+keyIDBytes+1:][:keySecretBytes]
	for name, credential := range map[string]string{
		"key": "Bearer " + key.Text, "basic": basic(key.ID + ":" + secret), "token": "Bearer " + f.tokenOf(key),
	} {
		on := f.connect()
		for request, want := range []int{1, 0, 0} {
			caller, checks, err := on.ask(credential)
			if err != nil || caller.Name != "key:etl" || caller.KeyID != key.ID || len(caller.Only) != 1 ||
				caller.Address != "192.0.2.1" || checks != want {
				t.Errorf("%s, request %d: got %+v after %d look-ups, error %v", name, request, caller, checks, err)
			}
		}
		if _, checks, err := f.connect().ask(credential); err != nil || checks != 1 {
			t.Errorf("%s, another connection: %d look-ups, error %v", name, checks, err)
		}
		f.records.change(f.key("key:other").ID, func(*APIKey) {})
		for request, want := range []int{1, 0} {
			if _, checks, err := on.ask(credential); err != nil || checks != want {
				t.Errorf("%s, request %d after a change: %d look-ups, error %v", name, request, checks, err)
			}
		}
	}
}

// A credential accepted on a connection is refused there as soon as it is no longer valid.
func TestConnectionForgets(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, row := range map[string]struct {
		change   func(f *fixture, key NewKey)
		ofTokens bool // whether the change affects only tokens
		kind     moorage.Kind
	}{
		"withdrawn": {change: func(f *fixture, key NewKey) {
			f.records.change(key.ID, func(k *APIKey) { *k = APIKey{} })
			delete(f.records.keys, key.ID)
		}},
		"replaced": {change: func(f *fixture, key NewKey) {
			f.records.change(key.ID, func(k *APIKey) { k.Secrets[0].SHA256, k.Secrets[0].Generation = [32]byte{1}, 2 })
		}},
		"disabled": {change: func(f *fixture, key NewKey) {
			f.records.change(key.ID, func(k *APIKey) { k.Disabled = true })
		}},
		"ended":   {change: func(f *fixture, _ NewKey) { f.clock.Advance(90 * day) }},
		"expired": {change: func(f *fixture, _ NewKey) { f.clock.Advance(tokenLifetimeDefault) }, ofTokens: true},
		"away":    {change: func(f *fixture, _ NewKey) { f.records.down = errDown }, kind: moorage.KindUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.records.epoch = 1
			key := f.key("key:etl")
			credentials := []string{"Bearer " + f.tokenOf(key)}
			if !row.ofTokens {
				credentials = append(credentials, "Bearer "+key.Text)
			}
			var lines []line
			for _, credential := range credentials {
				on := f.connect()
				for range 2 {
					if _, _, err := on.ask(credential); err != nil {
						t.Fatal(err)
					}
				}
				lines = append(lines, on)
			}
			row.change(f, key)
			want := row.kind
			if want == 0 {
				want = moorage.KindNotAuthorized
			}
			for i, credential := range credentials {
				if _, _, err := lines[i].ask(credential); moorage.KindOf(err) != want {
					t.Errorf("%.20s: got %v", credential, err)
				}
			}
		})
	}
}

// A token for a key ends with the key, even if the token itself would be valid for longer.
func TestConnectionEndsWithTheKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.records.epoch = 1
	key := f.key("key:etl")
	f.clock.Advance(90*24*time.Hour - time.Minute)
	token, on := "Bearer "+f.tokenOf(key), f.connect()
	if _, _, err := on.ask(token); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(time.Minute)
	if _, _, err := on.ask(token); moorage.KindOf(err) != moorage.KindNotAuthorized {
		t.Errorf("got %v", err)
	}
}

// If a proxy sends requests of several clients on one connection, each request has its own caller.
func TestConnectionOfManyClients(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.records.epoch = 1
	on := f.connect()
	keys := map[string]NewKey{}
	for _, name := range []string{"key:a", "key:b", "key:c"} {
		keys[name] = f.key(name)
	}
	var clients sync.WaitGroup
	for name, key := range keys {
		clients.Go(func() {
			for range 200 {
				if caller, _, err := on.ask("Bearer " + key.Text); err != nil || caller.Name != name {
					t.Errorf("%s: got %+v, error %v", name, caller, err)
				}
			}
		})
	}
	clients.Wait()
	ann := f.key("key:ann")
	if _, _, err := on.ask("Bearer " + ann.Text); err != nil {
		t.Fatal(err)
	}
	wrong := []byte(ann.Text)
	wrong[len(keyPrefix)+keyIDBytes+1] ^= 1
	if _, _, err := on.ask("Bearer " + string(wrong)); moorage.KindOf(err) != moorage.KindNotAuthorized {
		t.Errorf("a header of the same length: %v", err)
	}
}
