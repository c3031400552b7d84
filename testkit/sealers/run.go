package sealers

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"moorage/secrets"
)

// Fixture holds the Source under test, and everything else that the suite needs.
type Fixture struct {
	// Source has a key, and Other has a different key of the same form. Other is nil for a real
	// service, because only one key is available there.
	Source, Other secrets.Source
	// Refused is the error for a value sealed with another key of the same form. It is
	// secrets.ErrNoKey, or secrets.ErrOpen if the service does not distinguish the reasons.
	Refused error
	// PlainBytesMax is the length of the longest secret that the source can seal.
	PlainBytesMax int
	// Text is true if a sealed value contains base64 text. Some bits of such a text have no
	// meaning.
	Text bool
	// Foreign is true if the service is real. In that case, it is unknown which bytes of its values
	// have no meaning.
	Foreign bool
	// Turn rotates the key, as the key's administrator would. It is nil for a real service.
	Turn func(t *testing.T)
	// Fail makes the service answer the given number of requests with a status. A negative number
	// means all further requests. Close makes the service stop answering. Both are nil for a Source
	// without a service.
	Fail  func(requests, status int)
	Close func()
}

// Owner is the owner for which the suite seals.
var Owner = secrets.Owner{Store: "5a", Secret: "01.server", Warehouse: "77"}

const plain = `{"secret-access-key":"hunter2"}`

// Run runs the suite. Each part gets its own result of start.
func Run(t *testing.T, start func(t *testing.T) Fixture) {
	parts := []struct {
		name string
		run  func(t *testing.T, f Fixture)
	}{
		{"SealAndOpen", sealAndOpen},
		{"MovedValueDoesNotOpen", movedValueDoesNotOpen},
		{"ChangedValueDoesNotOpen", changedValueDoesNotOpen},
		{"OtherFormsAreNamed", otherFormsAreNamed},
		{"AtOnce", atOnce},
		{"OtherKey", otherKey},
		{"TurnedKey", turnedKey},
		{"SucceedAFile", succeedAFile},
		{"Service", service},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { part.run(t, start(t)) })
	}
}

func mustSeal(t *testing.T, source secrets.Sealer) []byte {
	t.Helper()
	sealed, err := source.Seal([]byte(plain), Owner)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func wantOpen(t *testing.T, source secrets.Sealer, sealed []byte) {
	t.Helper()
	if got, err := source.Open(sealed, Owner); err != nil || string(got) != plain {
		t.Errorf("Open = %q, %v; want %q", got, err, plain)
	}
}

// wantRefused checks that Open and Rewrap refuse a value.
func wantRefused(t *testing.T, source secrets.Sealer, sealed []byte, owner secrets.Owner, want error) {
	t.Helper()
	if got, err := source.Open(sealed, owner); !errors.Is(err, want) || got != nil {
		t.Errorf("Open of %q for %+v = %q, %v; want %v", sealed, owner, got, err, want)
	}
	if got, changed, err := source.Rewrap(sealed, owner); !errors.Is(err, want) || got != nil || changed {
		t.Errorf("Rewrap of %q for %+v = %q, %t, %v; want %v", sealed, owner, got, changed, err, want)
	}
}

func sealAndOpen(t *testing.T, f Fixture) {
	for _, length := range []int{1, 40, 2400, f.PlainBytesMax} {
		secret := bytes.Repeat([]byte("x"), length)
		sealed, err := f.Source.Seal(secret, Owner)
		if err != nil {
			t.Fatalf("a secret of %d bytes: %v", length, err)
		}
		if length > 10 && bytes.Contains(sealed, secret[:10]) {
			t.Errorf("the sealed value of %d bytes shows what is sealed", length)
		}
		if got, err := f.Source.Open(sealed, Owner); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("a secret of %d bytes opens as %d, %v", length, len(got), err)
		}
	}
	if bytes.Equal(mustSeal(t, f.Source), mustSeal(t, f.Source)) {
		t.Error("the same secret, sealed twice, is the same")
	}
	if _, err := f.Source.Seal(make([]byte, f.PlainBytesMax+1), Owner); !errors.Is(err, secrets.ErrTooLong) {
		t.Errorf("a secret that is too long: %v", err)
	}
}

func movedValueDoesNotOpen(t *testing.T, f Fixture) {
	sealed := mustSeal(t, f.Source)
	for _, moved := range []secrets.Owner{
		{Store: "5b", Secret: Owner.Secret, Warehouse: Owner.Warehouse},
		{Store: Owner.Store, Secret: "01.client", Warehouse: Owner.Warehouse},
		{Store: Owner.Store, Secret: Owner.Secret, Warehouse: "78"},
		{Store: Owner.Store, Secret: Owner.Warehouse, Warehouse: Owner.Secret},
	} {
		wantRefused(t, f.Source, sealed, moved, secrets.ErrOpen)
	}
	for _, none := range []secrets.Owner{
		{Secret: "01", Warehouse: "77"}, {Store: "5a", Warehouse: "77"}, {Store: "5a", Secret: "01"},
		{Store: "5a/01", Secret: "77", Warehouse: "1"},
	} {
		if _, err := f.Source.Seal([]byte(plain), none); err == nil {
			t.Errorf("sealed for %+v", none)
		}
		if _, err := f.Source.Open(sealed, none); err == nil {
			t.Errorf("opened for %+v", none)
		}
	}
	wantOpen(t, f.Source, sealed)
}

func changedValueDoesNotOpen(t *testing.T, f Fixture) {
	sealed := mustSeal(t, f.Source)
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		got, err := f.Source.Open(changed, Owner)
		meaningless := (f.Foreign || f.Text && (i < 12 || i >= len(sealed)-4)) && string(got) == plain
		if err == nil && !meaningless {
			t.Errorf("a value with byte %d changed opens to %q", i, got)
		}
		if errors.Is(err, secrets.ErrAway) {
			t.Errorf("a value with byte %d changed: %v", i, err)
		}
	}
	for length := range sealed {
		if got, err := f.Source.Open(sealed[:length], Owner); err == nil {
			t.Errorf("a value that was cut to %d bytes opens to %q", length, got)
		}
	}
	for _, never := range [][]byte{nil, {}, {0}, {200, 1, 2, 3}} {
		wantRefused(t, f.Source, never, Owner, secrets.ErrOpen)
	}
}

// atOnce seals and opens concurrently.
func atOnce(t *testing.T, f Fixture) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			sealed, err := f.Source.Seal([]byte(plain), Owner)
			if err != nil {
				t.Error(err)
				return
			}
			wantOpen(t, f.Source, sealed)
		})
	}
	group.Wait()
}

// otherFormsAreNamed passes values of each other form to the source's Open, and checks that the
// error names that form.
func otherFormsAreNamed(t *testing.T, f Fixture) {
	sealed := mustSeal(t, f.Source)
	for _, form := range []secrets.Form{secrets.FormFile, secrets.FormVault, secrets.FormAWS, secrets.FormGoogle} {
		if form == secrets.Form(sealed[0]) {
			continue
		}
		foreign := form.Wrap(sealed[1:])
		wantRefused(t, f.Source, foreign, Owner, secrets.ErrNoKey)
		if _, err := f.Source.Open(foreign, Owner); !strings.Contains(fmt.Sprint(err), form.String()) {
			t.Errorf("the error for a value of %s is: %v", form, err)
		}
	}
}

func otherKey(t *testing.T, f Fixture) {
	if f.Other == nil {
		return
	}
	sealed := mustSeal(t, f.Source)
	wantRefused(t, f.Other, sealed, Owner, f.Refused)
	move(t, secrets.Succeed(f.Other, f.Source), f.Other, sealed)
}

// move reseals a value with both. Afterwards, present alone must be able to open it.
func move(t *testing.T, both *secrets.Succession, present secrets.Source, sealed []byte) {
	t.Helper()
	wantOpen(t, both, sealed)
	again, changed, err := both.Rewrap(sealed, Owner)
	if err != nil || !changed {
		t.Fatalf("Rewrap of the succession = %t, %v", changed, err)
	}
	wantOpen(t, present, again)
	if third, changed, err := both.Rewrap(again, Owner); err != nil || changed || !bytes.Equal(third, again) {
		t.Errorf("Rewrap of the succession a second time = %t, %v", changed, err)
	}
	wantOpen(t, present, mustSeal(t, both))
	wantRefused(t, both, sealed, secrets.Owner{Store: "1", Secret: "2", Warehouse: "3"}, secrets.ErrOpen)
	if name, err := both.Present(t.Context()); err != nil || name == "" {
		t.Errorf("Present of the succession = %q, %v", name, err)
	}
}

// turnedKey checks that old values can still be opened after a rotation of the key. It also checks
// that Rewrap reseals each of them with the new key, only once.
func turnedKey(t *testing.T, f Fixture) {
	sealed := mustSeal(t, f.Source)
	if again, changed, err := f.Source.Rewrap(sealed, Owner); err != nil || changed || !bytes.Equal(again, sealed) {
		t.Errorf("Rewrap with the same key = %t, %v", changed, err)
	}
	before, err := f.Source.Present(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Turn == nil {
		return
	}
	f.Turn(t)
	now, err := f.Source.Present(t.Context())
	if err != nil || now == before {
		t.Errorf("Present = %q, %v; before the turn %q", now, err, before)
	}
	wantOpen(t, f.Source, sealed)
	again, changed, err := f.Source.Rewrap(sealed, Owner)
	if err != nil || !changed || bytes.Equal(again, sealed) {
		t.Fatalf("Rewrap = %q, %t, %v", again, changed, err)
	}
	wantOpen(t, f.Source, again)
	if third, changed, err := f.Source.Rewrap(again, Owner); err != nil || changed || !bytes.Equal(third, again) {
		t.Errorf("Rewrap a second time = %t, %v", changed, err)
	}
}

// succeedAFile moves values from a file to the source, and back.
func succeedAFile(t *testing.T, f Fixture) {
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := secrets.Init(path); err != nil {
		t.Fatal(err)
	}
	file, err := secrets.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	move(t, secrets.Succeed(f.Source, file), f.Source, mustSeal(t, file))
	move(t, secrets.Succeed(file, f.Source), file, mustSeal(t, f.Source))
}

// service checks that a request is retried after a transient failure. If the service keeps failing
// or is not reachable, the error must be secrets.ErrAway.
func service(t *testing.T, f Fixture) {
	if f.Fail == nil {
		return
	}
	sealed := mustSeal(t, f.Source)
	for _, status := range []int{
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
	} {
		f.Fail(2, status)
		wantOpen(t, f.Source, sealed)
		f.Fail(2, status)
		wantOpen(t, f.Source, mustSeal(t, f.Source))
	}
	for _, status := range []int{
		http.StatusTooManyRequests, http.StatusTemporaryRedirect, http.StatusForbidden, http.StatusNotFound,
		http.StatusOK, // the body is not the expected document
	} {
		f.Fail(-1, status)
		wantRefused(t, f.Source, sealed, Owner, secrets.ErrAway)
		if _, err := f.Source.Seal([]byte(plain), Owner); !errors.Is(err, secrets.ErrAway) {
			t.Errorf("Seal while the service answers %d: %v", status, err)
		}
		if _, _, err := f.Source.Rewrap(sealed, Owner); !errors.Is(err, secrets.ErrAway) {
			t.Errorf("Rewrap while the service answers %d: %v", status, err)
		}
		if _, err := f.Source.Present(t.Context()); !errors.Is(err, secrets.ErrAway) {
			t.Errorf("Present while the service answers %d: %v", status, err)
		}
	}
	f.Fail(0, 0)
	wantOpen(t, f.Source, sealed)
	f.Close()
	wantRefused(t, f.Source, sealed, Owner, secrets.ErrAway)
}
