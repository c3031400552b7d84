package gate_test

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
	"moorage/testkit/catalogkit"
)

// A long list ends soon after its caller has lost access to the container, or after the caller's
// token has expired.
func TestLongListsAreDecidedAgain(t *testing.T) {
	t.Parallel()
	for name, withdraw := range map[string]func(s *catalogkit.Secured){
		"revoke": func(s *catalogkit.Secured) {
			s.Revoke(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Describe)
		},
		"token": func(*catalogkit.Secured) {}, // the caller's token expires by itself
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &catalogkit.HangingStore{Store: memoryregistry.New(cryptorand.Reader)}
				s := catalogkit.NewSecured(t, store, true, func(c *catalog.Config) {
					g := gate.New(gate.Config{Store: store, Alone: true}) // by the clock of this test
					c.Guard, c.Store = g, g.Watch(store)
				})
				s.Populate()
				s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Describe)
				caller := moorage.Caller{Name: catalogkit.BobName}
				want := moorage.KindNoSuchWarehouse
				if name == "token" {
					caller.Ends, want = time.Now().Add(3*time.Second), moorage.KindNotAuthorized
				}
				bob := s.As(caller)
				if _, _, err := bob.ListTables(t.Context(), catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{}); err != nil {
					t.Fatal(err)
				}
				store.Hangs = true
				began, ended := time.Now(), make(chan error)
				go func() {
					_, _, err := bob.ListTables(t.Context(), catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{})
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
