package client

import (
	"context"
	"net/http"
	"time"
)

// LeaseRequest is a request for a lease on a table.
type LeaseRequest struct {
	Warehouse   string   `json:"warehouse"`
	Namespace   []string `json:"namespace"`
	Name        string   `json:"name"`
	Scope       string   `json:"scope,omitempty"` // default: the whole table
	Holder      string   `json:"holder"`
	TTLSeconds  int      `json:"ttl-seconds,omitempty"`
	WaitSeconds int      `json:"wait-seconds,omitempty"`
}

// Lease is a held lease. Its name is the value of the header X-Moorage-Lease.
type Lease struct {
	Lease     string    `json:"lease"`
	Token     uint64    `json:"token"`
	Scope     string    `json:"scope"`
	Holder    string    `json:"holder"`
	Principal string    `json:"principal"`
	Since     time.Time `json:"since"`
	Expires   time.Time `json:"expires"`
	TableUUID string    `json:"table-uuid,omitempty"` // only in the answer that grants the lease
}

// Renewal is the result of a renewal.
type Renewal struct {
	Renewed []Lease  `json:"renewed"`
	Lost    []string `json:"lost"`
}

// Released is the result of ending leases: the number of leases that ended.
type Released struct {
	Released int `json:"released"`
}

// LeasesPage is a page of leases.
type LeasesPage struct {
	Leases []Lease `json:"leases"`
	NextPage
}

// TakeLease takes a lease on a table.
func (c *Client) TakeLease(ctx context.Context, request LeaseRequest) (lease Lease, err error) {
	err = c.Do(ctx, Request{Method: http.MethodPost, Path: "/leases", Body: request}, &lease)
	return lease, err
}

// RenewLeases renews leases.
func (c *Client) RenewLeases(ctx context.Context, leases ...string) (renewal Renewal, err error) {
	body := struct {
		Leases []string `json:"leases"`
	}{leases}
	err = c.Do(ctx, Request{Method: http.MethodPut, Path: "/leases", Body: body}, &renewal)
	return renewal, err
}

// ReleaseLease ends a lease.
func (c *Client) ReleaseLease(ctx context.Context, lease string) error {
	var released Released
	return c.Do(ctx, Request{Method: http.MethodDelete, Path: Path("leases", lease)}, &released)
}
