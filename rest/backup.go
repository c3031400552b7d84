package rest

import (
	"net/http"
	"net/netip"

	"moorage"
)

// Backup is a copy of the store that was made.
type Backup struct {
	Folder  string `json:"folder"` // on the server's machine, absolute
	Records int    `json:"records"`
}

// backup lets the store be copied to a new folder whose name the request gives, and answers a Backup when the copy is durable.
func (s *server) backup(w http.ResponseWriter, r *http.Request) error {
	if err := refuseDistant(r); err != nil {
		return err
	}
	f, err := s.readFields(w, r, "backup request")
	if err != nil {
		return err
	}
	f.require("name")
	name := f.text("name")
	if f.failure != nil {
		return f.failure
	}
	made, err := s.config.Backup(r.Context(), name)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, made)
}

// forwardingHeaders are those by which a proxy says that a request is another one's.
var forwardingHeaders = []string{"Forwarded", "X-Forwarded-For", "Via"}

// refuseDistant refuses a request that does not come from this machine: what it asks for takes room on the disk, and
// only who has an account here has anything of it. A proxy on this machine speaks for others, as far as it says so.
func refuseDistant(r *http.Request) error {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	near := err == nil && remote.Addr().Unmap().IsLoopback()
	for _, header := range forwardingHeaders {
		near = near && r.Header[header] == nil
	}
	if !near {
		return moorage.Errorf(moorage.KindForbidden, "Only the machine that the server runs on may ask for this")
	}
	return nil
}
