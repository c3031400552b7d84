package s3_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/s3"
)

// roleServer answers AssumeRole as the test says, and records the requests.
type roleServer struct {
	*httptest.Server
	answer func(form url.Values) (status int, body string)

	mu    sync.Mutex // guards the field below
	asked []url.Values
}

func newRoleServer(t *testing.T, answer func(form url.Values) (int, string)) *roleServer {
	t.Helper()
	s := &roleServer{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a body that is not a form has no fields
		s.mu.Lock()
		s.asked = append(s.asked, r.PostForm)
		s.mu.Unlock()
		status, body := s.answer(r.PostForm)
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client notices if it is cut
	}))
	t.Cleanup(s.Close)
	return s
}

// store returns a store that gets its engines' credentials from s.
func (s *roleServer) store(t *testing.T, vending s3.Vending) *s3.Store {
	t.Helper()
	with := options("http://127.0.0.1:1")
	with.Vending, with.RetryDelayMax = vending, time.Millisecond
	with.Vending.Endpoint, with.Vending.Dialect = s.URL, s3.DialectAWS
	with.Vending.RoleARN = "arn:aws:iam::123456789012:role/engines"
	return open(t, with, "s3://lake/wh")
}

const assumed = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>` +
	`<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>` +
	`<Expiration>2026-12-01T10:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`

func refusedRole(code string) string {
	return `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>` + code +
		`</Code><Message>no</Message></Error><RequestId>1</RequestId></ErrorResponse>`
}

// TestAssumeRoleRequest: checks the request to the server, and the credential made from the answer.
func TestAssumeRoleRequest(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		vending s3.Vending
		scope   storage.Scope
		want    map[string]string
	}{
		"defaults": {scope: storage.Scope{Session: "corp:ann"},
			want: map[string]string{"RoleSessionName": "mrg-corp-ann", "DurationSeconds": "3600", "ExternalId": ""}},
		"an outside id": {vending: s3.Vending{ExternalID: "moorage:1"}, want: map[string]string{"ExternalId": "moorage:1"}},
		"a name that no session can have": {scope: storage.Scope{Session: "k8s:é/" + strings.Repeat("x", 100)},
			want: map[string]string{"RoleSessionName": "mrg-k8s---" + strings.Repeat("x", 54)}},
		"its own time":     {vending: s3.Vending{Duration: 2 * time.Hour}, want: map[string]string{"DurationSeconds": "7200"}},
		"a shorter time":   {scope: storage.Scope{Duration: 15 * time.Minute}, want: map[string]string{"DurationSeconds": "900"}},
		"too short a time": {scope: storage.Scope{Duration: time.Minute}, want: map[string]string{"DurationSeconds": "900"}},
		"too long a time":  {scope: storage.Scope{Duration: 24 * time.Hour}, want: map[string]string{"DurationSeconds": "43200"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newRoleServer(t, func(url.Values) (int, string) { return http.StatusOK, assumed })
			row.scope.Locations = []string{"s3://lake/wh/ns/t"}
			made, err := server.store(t, row.vending).Vend(t.Context(), row.scope)
			if err != nil || made.Config["s3.session-token"] != "token" || made.Config["s3.session-token-expires-at-ms"] != "1796119200000" {
				t.Fatalf("Vend = %+v, %v", made, err)
			}
			form := server.asked[0]
			for field, want := range row.want {
				if form.Get(field) != want {
					t.Errorf("%s is %q, want %q", field, form.Get(field), want)
				}
			}
			if !strings.Contains(form.Get("Policy"), "arn:aws:s3:::lake/wh/ns/t/*") || form.Get("RoleArn") == "" {
				t.Errorf("asked for %v", form)
			}
		})
	}
}

// TestAssumeRoleAnswers: a refusal is distinguished from an unavailable server. If a policy is too
// long, a second request covers only the present location. A key without a session token is never
// passed on.
func TestAssumeRoleAnswers(t *testing.T) {
	t.Parallel()
	tooLong := refusedRole("PackedPolicyTooLarge")
	for name, row := range map[string]struct {
		status    int
		body      string
		locations []string
		asked     int
		want      error // nil for any other error
	}{
		"away":             {503, "", nil, 0, storage.ErrUnavailable},
		"too many":         {400, refusedRole("Throttling"), nil, 0, storage.ErrUnavailable},
		"denied":           {403, refusedRole("AccessDenied"), nil, 1, nil},
		"too long":         {400, tooLong, nil, 1, storage.ErrUnscopable},
		"too long, of two": {400, tooLong, []string{"s3://lake/wh/ns/t", "s3://lake/wh/old"}, 2, storage.ErrUnscopable},
		"no session":       {200, strings.Replace(assumed, "<SessionToken>token</SessionToken>", "", 1), nil, 1, nil},
		"no end":           {200, strings.Replace(assumed, "<Expiration>2026-12-01T10:00:00Z</Expiration>", "", 1), nil, 1, nil},
		"no key":           {200, strings.Replace(assumed, "ASIA1", "", 1), nil, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newRoleServer(t, func(url.Values) (int, string) { return row.status, row.body })
			if row.locations == nil {
				row.locations = []string{"s3://lake/wh/ns/t"}
			}
			made, err := server.store(t, s3.Vending{}).Vend(t.Context(), storage.Scope{Locations: row.locations})
			isKnown := errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnscopable)
			if err == nil || row.want != nil && !errors.Is(err, row.want) || row.want == nil && isKnown || len(made.Config) > 0 {
				t.Errorf("Vend = %+v, %v; want %v", made, err, row.want)
			}
			if row.asked > 0 && len(server.asked) != row.asked {
				t.Errorf("the server was asked %d times, want %d", len(server.asked), row.asked)
			}
		})
	}
	server := newRoleServer(t, func(form url.Values) (int, string) {
		if strings.Contains(form.Get("Policy"), "wh/old/") {
			return 400, tooLong
		}
		return 200, assumed
	})
	scope := storage.Scope{Locations: []string{"s3://lake/wh/ns/t", "s3://lake/wh/old"}}
	if _, err := server.store(t, s3.Vending{}).Vend(t.Context(), scope); err != nil || len(server.asked) != 2 {
		t.Errorf("after a refusal of both locations: %v, asked %d times", err, len(server.asked))
	}
}
