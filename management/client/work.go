package client

import (
	"context"
	"net/http"
	"net/url"
)

// WorkRequest asks for a piece of work.
type WorkRequest struct {
	Kinds       []string `json:"kinds"`
	Holder      string   `json:"holder"`
	TTLSeconds  int      `json:"ttl-seconds,omitempty"`
	WaitSeconds int      `json:"wait-seconds,omitempty"`
}

// Work is a piece of work: a job on a table, with a lease.
type Work struct {
	Job       string   `json:"job"`
	Kind      string   `json:"kind"`
	Lease     Lease    `json:"lease"`
	Warehouse string   `json:"warehouse"`
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
	TableUUID string   `json:"table-uuid"`
	// Settings are texts, or numbers of milliseconds, bytes or things.
	Settings map[string]any `json:"settings"`
}

// WorkEnd says how a piece of work ended.
type WorkEnd struct {
	Outcome string `json:"outcome"` // done, nothing, failed or released
	Files   int64  `json:"files,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	Error   string `json:"error,omitempty"`
}

// ClaimWork asks for a piece of work; its job is empty if nothing is due.
func (c *Client) ClaimWork(ctx context.Context, request WorkRequest) (work Work, err error) {
	err = c.ask(ctx, http.MethodPost, "/work", request, &work)
	return work, err
}

// ProgressWork renews the lease of a piece of work.
func (c *Client) ProgressWork(ctx context.Context, job string) (lease Lease, err error) {
	err = c.ask(ctx, http.MethodPost, "/work/"+url.PathEscape(job)+"/progress", struct{}{}, &lease)
	return lease, err
}

// FinishWork ends a piece of work, and its lease.
func (c *Client) FinishWork(ctx context.Context, job string, end WorkEnd) error {
	return c.ask(ctx, http.MethodPost, "/work/"+url.PathEscape(job)+"/finish", end, new(WorkEnd))
}
