package catalog_test

import (
	cryptorand "crypto/rand"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	memoryregistry "moorage/registry/memory"
)

// A principal that is enabled again at one node is let in at the others at once.
func TestEnabledPrincipalIsLetInOnEveryNode(t *testing.T) {
	t.Parallel()
	first := newSecured(t, memoryregistry.New(cryptorand.Reader), false)
	first.populate()
	first.grant(onTable("t"), bobName, access.Read)
	second := secure(t, first.store, false, func(c *catalog.Config) { c.OpenStorage = first.config.OpenStorage })
	for _, disabled := range []bool{true, false, true, false} {
		_, err := first.admin().PutPrincipal(t.Context(), bobName, grants.PrincipalSpec{Disabled: disabled})
		must(t, err)
		for name, node := range map[string]*secured{"the node": first, "another node": second} {
			err := node.as(bobName).TableExists(t.Context(), ident("t"))
			if refused := moorage.KindOf(err) == moorage.KindNotAuthorized; err != nil != refused || refused != disabled {
				t.Errorf("%s answers somebody who is disabled (%t): %v", name, disabled, err)
			}
		}
	}
}
