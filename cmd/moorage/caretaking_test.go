package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"moorage"
	"moorage/internal/cli"
	"moorage/maintenance/policy"
	"moorage/management/client"
)

// blind are caretakers of whom nobody gets to know a status.
type blind struct {
	caretakers

	err     error
	changes int
}

func (b *blind) MaintenanceStatus(context.Context, client.Object) (client.MaintenanceStatus, error) {
	return client.MaintenanceStatus{}, b.err
}

func (b *blind) PreviewMaintenancePolicy(context.Context, client.Object, string, client.MaintenancePolicy,
	client.Page) ([]client.MaintenancePreview, string, error) {
	return nil, "", nil
}

func (b *blind) PutMaintenancePolicy(context.Context, client.Object, string, client.MaintenancePolicy) error {
	b.changes++
	return nil
}

func (b *blind) ResumeMaintenance(context.Context, client.MaintenanceChange) error {
	b.changes++
	return nil
}

// TestStatusThatCannotBeRead: who may change maintenance and not see it is told that it is done.
// Another failure to see it is told to the caller, once it is done.
func TestStatusThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err     error
		isFault bool
	}{
		"forbidden here":          {moorage.Errorf(moorage.KindForbidden, "no"), false},
		"not found here":          {moorage.Errorf(moorage.KindNoSuchTable, "no"), false},
		"a store that is away":    {moorage.Errorf(moorage.KindUnavailable, "no"), true},
		"forbidden on a server":   {&client.Error{Code: http.StatusForbidden}, false},
		"not found on a server":   {&client.Error{Code: http.StatusNotFound}, false},
		"a server that is away":   {&client.Error{Code: http.StatusServiceUnavailable}, true},
		"a server that is silent": {errors.New("no server answers"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, out := &blind{err: tt.err}, new(bytes.Buffer)
			for does, do := range map[string]func() error{
				"it is enabled": func() error {
					return enableMaintenance(t.Context(), a, cli.Config{}, out, policy.SnapshotManagement)
				},
				"it is resumed": func() error { return resumeMaintenance(t.Context(), a, client.MaintenanceChange{}, out) },
			} {
				err := do()
				if tt.isFault != errors.Is(err, tt.err) || err != nil && !strings.Contains(err.Error(), does) {
					t.Errorf("%s: %v", does, err)
				}
			}
			if a.changes != 2 {
				t.Errorf("%d changes were made", a.changes)
			}
		})
	}
}
