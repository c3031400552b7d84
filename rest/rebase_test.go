package rest

import (
	"net/http"
	"testing"

	"moorage"
	"moorage/catalog"
)

// A header of a commit or a transaction explains what to do with an append that comes too late.
func TestRebaseHeader(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		if s.operation != "updateTable" && s.operation != "commitTransaction" {
			continue
		}
		if s.operation == "commitTransaction" {
			s.body = `{"table-changes":[{"identifier":{"namespace":["ns"],"name":"t"},"requirements":[],"updates":[]}]}`
		}
		t.Run(s.operation, func(t *testing.T) {
			t.Parallel()
			for value, want := range map[string]catalog.RebaseChoice{
				"on": catalog.RebaseOn, "off": catalog.RebaseOff, "none": catalog.RebaseUnset,
			} {
				fake := &fakeCatalog{fail: moorage.Errorf(moorage.KindNoSuchTable, "no")}
				var header []string
				if value != "none" {
					header = []string{catalog.RebaseHeader, value}
				}
				send(NewServer(TestConfig{Catalog: fake}), s.method, s.path, s.body, header...)
				if len(fake.rebases) == 0 || fake.rebases[0] != want {
					t.Errorf("%s: the request says %d, want %d", value, fake.rebases, want)
				}
			}
			for _, value := range []string{"maybe", "ON", ""} {
				fake := &fakeCatalog{}
				answer := send(NewServer(TestConfig{Catalog: fake}), s.method, s.path, s.body, catalog.RebaseHeader, value)
				wantFailure(t, answer, http.StatusBadRequest, "BadRequestException")
				if len(fake.calls) > 0 {
					t.Errorf("%q reaches the catalog: %v", value, fake.calls)
				}
			}
		})
	}
}
