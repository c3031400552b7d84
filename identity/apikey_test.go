package identity

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"moorage"
)

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

// A key authenticates its owner in every form in which clients send it.
func TestAPIKeyIsAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl", "writers")
	secret := key.Text[len(keyPrefix)+keyIDBytes+1:][:keySecretBytes]
	for name, header := range map[string]string{
		"bearer":           "Bearer " + key.Text,
		"other case":       "bearer " + key.Text,
		"id and secret":    basic(key.ID + ":" + secret),
		"id and whole key": basic(key.ID + ":" + key.Text),
		"no id":            basic(":" + key.Text),
		"no colon":         basic(key.Text),
	} {
		caller, err := f.ask(header)
		if err != nil || caller.Name != "key:etl" || caller.KeyID != key.ID || caller.KeyGeneration != 1 ||
			caller.Source != moorage.SourceKey || len(caller.Only) != 1 || caller.Address != "192.0.2.1" {
			t.Errorf("%s: got %+v, error %v", name, caller, err)
		}
	}
}

func TestAPIKeyIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key, other := f.key("key:etl"), f.key("key:other")
	secret := key.Text[len(keyPrefix)+keyIDBytes+1:][:keySecretBytes]
	unknown, err := NewAPIKey(rand.NewChaCha8([32]byte{1}), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ header, reason string }{
		"unknown":            {"Bearer " + unknown.Text, reasonAPIKey},
		"checksum":           {"Bearer " + key.Text[:keyBytes-1] + "!", reasonMalformed},
		"cut":                {"Bearer " + key.Text[:keyBytes-1], reasonMalformed},
		"longer":             {"Bearer " + key.Text + "0", reasonMalformed},
		"id of another":      {basic(other.ID + ":" + secret), reasonAPIKey},
		"other id, whole":    {basic(other.ID + ":" + key.Text), reasonMalformed},
		"no secret":          {basic(key.ID + ":"), reasonMalformed},
		"secret alone":       {basic(secret), reasonMalformed},
		"not base64":         {"Basic " + key.Text, reasonMalformed},
		"other scheme":       {"Digest " + key.Text, reasonMalformed},
		"no scheme":          {key.Text, reasonMalformed},
		"empty":              {"", reasonMalformed},
		"scheme alone":       {"Bearer ", reasonMalformed},
		"prefix of a secret": {basic(key.ID + ":" + secret[:42]), reasonMalformed},
	} {
		_, err := f.ask(row.header)
		if wantReason(t, f, err, row.reason); t.Failed() {
			t.Fatal(name)
		}
		if strings.Contains(err.Error(), secret) || moorage.MessageOf(err) != textRefused {
			t.Errorf("%s: the error says %v", name, err)
		}
	}
	_, err = f.ask("Bearer "+key.Text, "Bearer "+key.Text)
	wantReason(t, f, err, reasonMalformed)
	_, err = f.ask()
	wantReason(t, f, err, reasonNone)
}

// While a key is being replaced, both of its secrets are valid. A secret that has ended, or was
// removed, is not valid.
func TestAPIKeyEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl")
	second, err := NewAPIKey(rand.NewChaCha8([32]byte{2}), key.ID)
	if err != nil || second.ID != key.ID || second.Text == key.Text {
		t.Fatalf("got %+v, error %v", second, err)
	}
	record := f.records.keys[key.ID]
	record.Secrets = append(record.Secrets, KeySecret{second.SHA256, 2, f.clock.Now().Add(365 * 24 * time.Hour)})
	f.records.keys[key.ID] = record
	for generation, text := range map[uint64]string{1: key.Text, 2: second.Text} {
		if caller, err := f.ask("Bearer " + text); err != nil || caller.KeyGeneration != generation {
			t.Errorf("generation %d: got %+v, error %v", generation, caller, err)
		}
	}
	token := f.tokenOf(key)
	f.clock.Advance(91 * 24 * time.Hour)
	_, err = f.ask("Bearer " + key.Text)
	wantReason(t, f, err, "key:etl "+key.ID+": ended 2026-09-29T12:00:00Z")
	if text := moorage.MessageOf(err); text != "The credentials expired at 2026-09-29T12:00:00Z: get new ones" {
		t.Errorf("the owner of a key that ended is told %q", text)
	}
	if _, err = f.ask("Bearer " + second.Text); err != nil {
		t.Error(err)
	}
	f.clock.Advance(-91 * 24 * time.Hour)
	if _, err = f.ask("Bearer " + token); err != nil {
		t.Fatal(err)
	}
	record.Secrets = record.Secrets[1:]
	f.records.keys[key.ID] = record
	_, err = f.ask("Bearer " + token) // even though it was just verified
	wantReason(t, f, err, "key:etl "+key.ID+": replaced")
}

// A key is not refused while the store is unavailable.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl")
	token := f.tokenOf(key)
	f.records.down = errDown
	for _, credential := range []string{key.Text, token} {
		if _, err := f.ask("Bearer " + credential); moorage.KindOf(err) != moorage.KindUnavailable {
			t.Errorf("got %v", err)
		}
	}
	if _, err := f.post("", "grant_type", grantCredentials, "client_secret", key.Text); moorage.KindOf(err) != moorage.KindUnavailable {
		t.Errorf("got %v", err)
	}
}

// A client that guesses is told to wait. A correct secret is accepted, even from the same address.
func TestFailuresAreLimited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl")
	token, fresh := f.tokenOf(key), f.tokenOf(f.key("key:fresh"))
	if _, err := f.ask("Bearer " + token); err != nil {
		t.Fatal(err)
	}
	for i := range failuresMax + 5 {
		_, err := f.ask("Bearer a.b.c")
		want := moorage.KindNotAuthorized
		if i >= failuresMax {
			want = moorage.KindTooManyRequests
		}
		if moorage.KindOf(err) != want {
			t.Fatalf("failure %d: %v", i, err)
		}
	}
	for name, credential := range map[string]string{"key": key.Text, "known token": token} {
		if _, err := f.ask("Bearer " + credential); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.ask("Bearer " + fresh); moorage.KindOf(err) != moorage.KindTooManyRequests {
		t.Errorf("a token that is not known: %v", err)
	}
	if _, err := f.askFrom("192.0.2.2:7", "Bearer "+fresh); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	f.clock.Advance(time.Second)
	if _, err := f.ask("Bearer a.b.c"); moorage.KindOf(err) != moorage.KindNotAuthorized {
		t.Errorf("a second later: %v", err)
	}
}

func TestLimiterGroupsAddresses(t *testing.T) {
	t.Parallel()
	l := newLimiter(newClock().Now, 1)
	for _, row := range []struct {
		address string
		want    bool
	}{
		{"2001:db8::1", true}, {"2001:db8::2", false}, {"2001:db8:0:1::1", true}, {"192.0.2.1", true}, {"192.0.2.2", true},
		{"192.0.2.1", false}, {"", true}, {"", false},
	} {
		if got := l.add(row.address); got != row.want {
			t.Errorf("%s: got %v", row.address, got)
		}
	}
}

func FuzzAPIKey(f *testing.F) {
	for i := range byte(4) {
		key, err := NewAPIKey(rand.NewChaCha8([32]byte{i}), "")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(key.Text)
	}
	f.Add(keyPrefix)
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, ok := parseAPIKey(text)
		if !ok {
			return
		}
		if again := keyPrefix + id + "_" + secret; text != again+"_"+checksum(again) || len(text) != keyBytes {
			t.Errorf("%q was read as %q and %q", text, id, secret)
		}
		if pairID, pairSecret, ok := parsePair("", text); !ok || pairID != id || pairSecret != secret {
			t.Errorf("%q is no pair", text)
		}
	})
}
