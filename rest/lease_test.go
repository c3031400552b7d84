package rest

import (
	"net/http"
	"testing"

	"moorage"
)

// Each change may name a lease in one header. An invalid header is refused.
func TestLeaseHeader(t *testing.T) {
	t.Parallel()
	const lease = "0123456789abcdef0123456789abcdef-41"
	for _, s := range samples() {
		if s.operation != "updateTable" && s.operation != "dropTable" && s.operation != "renameTable" {
			continue
		}
		for name, header := range map[string][]string{"one": {leaseHeader, lease}, "none": nil} {
			fake := &fakeCatalog{fail: moorage.Errorf(moorage.KindNoSuchTable, "no")}
			send(NewServer(TestConfig{Catalog: fake}), s.method, s.path, s.body, header...)
			if under := len(fake.leases) == 1 && fake.leases[0].String() == lease; under != (name == "one") || len(fake.calls) == 0 {
				t.Errorf("%s, %s: asked %v under %v", s.operation, name, fake.calls, fake.leases)
			}
		}
		for _, header := range [][]string{
			{leaseHeader, ""}, {leaseHeader, "41"}, {leaseHeader, lease + " "}, {leaseHeader, "0123456789abcdef0123456789abcdef-041"},
			{leaseHeader, lease, leaseHeader, lease},
		} {
			fake := &fakeCatalog{}
			answer := send(NewServer(TestConfig{Catalog: fake}), s.method, s.path, s.body, header...)
			wantFailure(t, answer, http.StatusBadRequest, "BadRequestException")
			if len(fake.calls) > 0 {
				t.Errorf("%s: %q reaches the catalog: %v", s.operation, header, fake.calls)
			}
		}
	}
}
