package management

import (
	"context"
	"net/http"

	"moorage/internal/web"
	"moorage/maintenance/due"
	"moorage/maintenance/policy"
	"moorage/management/client"
)

// previewSizes bound a page of a preview. Each table on it costs the reads of its job.
var previewSizes = web.PageSizes{Default: 10, Max: 100, Always: true}

// previewMaintenancePolicy answers with the effects that putMaintenancePolicy with the same body
// would have.
func (m maintained) previewMaintenancePolicy(w http.ResponseWriter, r *http.Request) error {
	object, of, err := policyIn(r)
	if err != nil {
		return err
	}
	body, err := m.server.ReadBody(w, r)
	if err != nil {
		return err
	}
	said, err := policyOfBody(body)
	if err != nil {
		return err
	}
	find := func(ctx context.Context, page client.Page) ([]client.MaintenancePreview, string, error) {
		return m.caretaker(r).PreviewMaintenancePolicy(ctx, object, of, said, page)
	}
	return list(m.server, "preview of "+of+" of "+object.String(), previewSizes, find,
		func(found []client.MaintenancePreview, next *string) any {
			return client.MaintenancePreviewPage{Tables: found, NextPageToken: next}
		})(w, r)
}

// askedOf returns the requested policy for a type of job.
func (c Caretaker) askedOf(of string, said client.MaintenancePolicy) (policy.Asked, error) {
	t, err := typeOf(of)
	if err != nil {
		return policy.Asked{}, err
	}
	settings, err := settingsOf(t, said.Settings)
	return policy.Asked{
		Type: t, Status: policy.Status(said.Status), Settings: settings, Unsafe: said.Unsafe, By: c.Caller,
	}, err
}

// PreviewMaintenancePolicy returns a page of the effects on the tables of an object if it had this
// policy now. A page can be empty without being the last. It changes nothing.
func (c Caretaker) PreviewMaintenancePolicy(ctx context.Context, object client.Object, of string,
	said client.MaintenancePolicy, page client.Page) ([]client.MaintenancePreview, string, error) {
	asked, err := c.askedOf(of, said)
	if err != nil {
		return nil, "", err
	}
	ident, err := identOf(object)
	if err != nil {
		return nil, "", err
	}
	found, next, err := c.Steering.Preview(ctx, c.Scopes, ident, asked, page.After, page.Limit)
	all := make([]client.MaintenancePreview, len(found))
	for i, each := range found {
		all[i] = previewOf(each)
	}
	return all, next, err
}

func previewOf(of due.Preview) client.MaintenancePreview {
	made := client.MaintenancePreview{
		Object: objectCalled(of.Table), Nothing: of.Nothing, Failed: of.Failed,
		Snapshots: len(of.Run.Expiry.Snapshots), Refs: len(of.Run.Expiry.Refs),
		Files: of.Run.Files, Bytes: of.Run.Bytes, Due: of.Due,
	}
	if of.Run.Blocked != "" {
		made.Failed = "the job would stop: " + of.Run.Blocked
	}
	if of.Due {
		made.Files = max(of.Files, 0)
	}
	return made
}
