package catalog_test

import (
	cryptorand "crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	memoryregistry "moorage/registry/memory"
)

// A list that lasts long ends soon after its caller may not see what it lists, or his token ended.
func TestLongListsAreDecidedAgain(t *testing.T) {
	t.Parallel()
	for name, withdraw := range map[string]func(s *secured){
		"revoke": func(s *secured) { s.revoke(onNamespace("ns"), bobName, access.Describe) },
		"token":  func(*secured) {}, // the caller's ends by itself
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &hangingStore{Store: memoryregistry.New(cryptorand.Reader)}
				s := newSecured(t, store, true, func(c *catalog.Config) {
					g := gate.New(gate.Config{Store: store, Alone: true}) // by the clock of this test
					c.Guard, c.Store = g, g.Watch(store)
				})
				s.populate()
				s.grant(onNamespace("ns"), bobName, access.Describe)
				caller := moorage.Caller{Name: bobName}
				want := moorage.KindNoSuchWarehouse
				if name == "token" {
					caller.Ends, want = time.Now().Add(3*time.Second), moorage.KindNotAuthorized
				}
				bob := s.As(caller)
				if _, _, err := bob.ListTables(t.Context(), testWarehouse, moorage.Namespace{"ns"}, moorage.Page{}); err != nil {
					t.Fatal(err)
				}
				store.hangs = true
				began, ended := time.Now(), make(chan error)
				go func() {
					_, _, err := bob.ListTables(t.Context(), testWarehouse, moorage.Namespace{"ns"}, moorage.Page{})
					ended <- err
				}()
				synctest.Wait()
				withdraw(s)
				if err := <-ended; moorage.KindOf(err) != want {
					t.Errorf("%v, want %v", err, want)
				}
				if lasted := time.Since(began); lasted != gate.RecheckInterval {
					t.Errorf("it ended after %s", lasted)
				}
			})
		})
	}
}
