package management

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage"
	"moorage/management/client"
)

// TestBackupRequest requests backups from this machine and from others, in good and bad form.
func TestBackupRequest(t *testing.T) {
	t.Parallel()
	const near = "127.0.0.1:4711"
	proxied := func(name string) http.Header { return http.Header{name: {"for=192.0.2.7"}} }
	tests := []struct {
		name, remote string
		header       http.Header
		body         string
		status       int
		answer       string // a part of the answer
	}{
		{"from here", near, nil, `{"name":"monday"}`, 200, `{"folder":"/backups/monday","records":7}`},
		{"from here, IPv6", "[::1]:4711", nil, `{"name":"monday"}`, 200, `"records":7`},
		{"from here, IPv4 within IPv6", "[::ffff:127.0.0.1]:4711", nil, `{"name":"monday"}`, 200, `"records":7`},
		{"from elsewhere", "192.0.2.7:4711", nil, `{"name":"monday"}`, 403, "Only the machine"},
		{"from an unknown place", "@", nil, `{"name":"monday"}`, 403, "Only the machine"},
		{"through a proxy", near, proxied("X-Forwarded-For"), `{"name":"monday"}`, 403, "Only the machine"},
		{"through a proxy that keeps to the standard", near, proxied("Forwarded"), `{"name":"monday"}`, 403, "Only the machine"},
		{"through a proxy that says little", near, proxied("Via"), `{"name":"monday"}`, 403, "Only the machine"},
		{"for a page from elsewhere", near, http.Header{"Sec-Fetch-Site": {"cross-site"}}, `{"name":"monday"}`, 403, "another origin"},
		{"no name", near, nil, `{}`, 400, `member \"name\" is missing`},
		{"a name that is none", near, nil, `{"name":7}`, 400, "must be a string"},
		{"no body", near, nil, "", 400, "Cannot parse backup request"},
		{"a name that is taken", near, nil, `{"name":"sunday"}`, 409, "AlreadyExistsException"},
	}
	server := newServer(t, Config{Recovery: &fake{}, Purges: &fake{}, Backup: func(_ context.Context, name string) (client.Backup, error) {
		if name == "sunday" {
			return client.Backup{}, moorage.Errorf(moorage.KindAlreadyExists, "There is a backup already: %s", name)
		}
		return client.Backup{Folder: "/backups/" + name, Records: 7}, nil
	}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := askBackup(server, tt.remote, tt.header, tt.body); got.Code != tt.status || !strings.Contains(got.Body.String(), tt.answer) {
				t.Errorf("got %d %s, want %d and %s", got.Code, got.Body, tt.status, tt.answer)
			}
		})
	}
	if got := askBackup(newServer(t, Config{Recovery: &fake{}, Purges: &fake{}}), near, nil, `{"name":"monday"}`); got.Code != http.StatusNotAcceptable {
		t.Errorf("a server without backups: %d %s, want 406", got.Code, got.Body)
	}
}

func askBackup(server http.Handler, remote string, header http.Header, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/management/v1/backup", strings.NewReader(body))
	request.RemoteAddr = remote
	for name, values := range header {
		request.Header[name] = values
	}
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	return recorder
}
