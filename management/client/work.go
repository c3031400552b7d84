package client

import (
	"context"
	"net/http"
)

// WorkRequest is a request for a job.
type WorkRequest struct {
	Kinds       []string `json:"kinds"`
	Holder      string   `json:"holder"`
	TTLSeconds  int      `json:"ttl-seconds,omitempty"`
	WaitSeconds int      `json:"wait-seconds,omitempty"`
}

// Work is a job on a table, with a lease.
type Work struct {
	Job       string   `json:"job"`
	Kind      string   `json:"kind"`
	Lease     Lease    `json:"lease"`
	Warehouse string   `json:"warehouse"`
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
	TableUUID string   `json:"table-uuid"`
	// The values of Settings are strings, or numbers of milliseconds, bytes or objects.
	Settings map[string]any `json:"settings"`
}

// WorkEnd is the result of a job.
type WorkEnd struct {
	Outcome string `json:"outcome"` // done, nothing, failed or released
	Files   int64  `json:"files,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	Error   string `json:"error,omitempty"`
}

// ClaimWork claims a job. Its Job is empty if nothing is due.
func (c *Client) ClaimWork(ctx context.Context, request WorkRequest) (work Work, err error) {
	err = c.Do(ctx, Request{Method: http.MethodPost, Path: "/work", Body: request}, &work)
	return work, err
}

// ProgressWork renews the lease of a job.
func (c *Client) ProgressWork(ctx context.Context, job string) (lease Lease, err error) {
	err = c.Do(ctx, Request{Method: http.MethodPost, Path: Path("work", job, "progress"), Body: struct{}{}}, &lease)
	return lease, err
}

// FinishWork ends a job, and its lease.
func (c *Client) FinishWork(ctx context.Context, job string, end WorkEnd) error {
	return c.Do(ctx, Request{Method: http.MethodPost, Path: Path("work", job, "finish"), Body: end}, new(WorkEnd))
}
