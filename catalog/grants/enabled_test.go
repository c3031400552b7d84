package grants_test

import (
	cryptorand "crypto/rand"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
)

// If a principal is enabled again at one node, the other nodes admit it at once.
func TestEnabledPrincipalIsLetInOnEveryNode(t *testing.T) {
	t.Parallel()
	first := catalogkit.NewSecured(t, memoryregistry.New(cryptorand.Reader), false)
	first.Populate()
	first.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
	second := catalogkit.Secure(t, first.Store, false, func(c *catalog.Config) { c.OpenStorage = first.Config.OpenStorage })
	for _, disabled := range []bool{true, false, true, false} {
		_, err := first.Admin().PutPrincipal(t.Context(), catalogkit.BobName, grants.PrincipalSpec{Disabled: disabled})
		must(t, err)
		for name, node := range map[string]*catalogkit.Secured{"the node": first, "another node": second} {
			err := node.Named(catalogkit.BobName).TableExists(t.Context(), ident("t"))
			if refused := moorage.KindOf(err) == moorage.KindNotAuthorized; err != nil != refused || refused != disabled {
				t.Errorf("%s answers somebody who is disabled (%t): %v", name, disabled, err)
			}
		}
	}
}
