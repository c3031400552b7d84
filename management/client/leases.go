package client

import (
	"context"
	"net/http"
	"net/url"
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
	TableUUID string    `json:"table-uuid,omitempty"` // only of a newly granted lease
}

// Renewal is the result of a renewal.
type Renewal struct {
	Renewed []Lease  `json:"renewed"`
	Lost    []string `json:"lost"`
}

// Released has the number of ended leases.
type Released struct {
	Released int `json:"released"`
}

// LeasesPage is a page of leases.
type LeasesPage struct {
	Leases        []Lease `json:"leases"`
	NextPageToken *string `json:"next-page-token"`
}

// TakeLease takes a lease on a table.
func (c *Client) TakeLease(ctx context.Context, request LeaseRequest) (lease Lease, err error) {
	err = c.ask(ctx, http.MethodPost, "/leases", request, &lease)
	return lease, err
}

// RenewLeases renews leases.
func (c *Client) RenewLeases(ctx context.Context, leases ...string) (renewal Renewal, err error) {
	body := struct {
		Leases []string `json:"leases"`
	}{leases}
	err = c.ask(ctx, http.MethodPut, "/leases", body, &renewal)
	return renewal, err
}

// ReleaseLease ends a lease.
func (c *Client) ReleaseLease(ctx context.Context, lease string) error {
	var released Released
	return c.ask(ctx, http.MethodDelete, "/leases/"+url.PathEscape(lease), nil, &released)
}

// LeaseFilter selects the leases of a list. An empty field selects all.
type LeaseFilter struct {
	Warehouse string
	Holder    string
}

// Leases returns a page of the held leases. A page can be empty without being the last.
func (c *Client) Leases(ctx context.Context, filter LeaseFilter, page Page) ([]Lease, string, error) {
	var answer LeasesPage
	asked := query(page)
	for _, each := range [][2]string{{"warehouse", filter.Warehouse}, {"holder", filter.Holder}} {
		if each[1] != "" {
			asked += "&" + url.Values{each[0]: {each[1]}}.Encode()
		}
	}
	err := c.ask(ctx, http.MethodGet, "/leases"+asked, nil, &answer)
	return answer.Leases, valueOf(answer.NextPageToken), err
}
