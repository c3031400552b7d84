package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/testkit/loopback"
)

// The health check finds the server from the settings of serve, in flags and in the environment.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	address, err := loopback.FreeAddress() // no other listener gets it when the server has ended
	if err != nil {
		t.Fatal(err)
	}
	server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--debug-listen", "0", "--listen", address)
	_, port, _ := net.SplitHostPort(address)
	debug := strings.TrimPrefix(debugLine.FindStringSubmatch(server.stderr.String())[1], "http://")
	for _, args := range [][]string{
		{"--listen", address},
		{"--listen", "0.0.0.0:" + port},
		{"--listen", ":" + port},
		{"--debug-listen", debug},
	} {
		got := checkedInTime(t, func() result { return runToEnd(t, append([]string{"healthcheck"}, args...)...) })
		if got.code != cli.ExitDone || got.stdout != "ready\n" || got.stderr != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
	got := checkedInTime(t, func() result { return processToEnd(t, []string{"MOORAGE_LISTEN=" + address}, "healthcheck") })
	if got.code != cli.ExitDone || got.stdout != "ready\n" {
		t.Errorf("by the environment: %+v", got)
	}
	server.stop()
	got = runToEnd(t, "healthcheck", "--listen", address)
	if got.code != cli.ExitFailed || !strings.Contains(got.stderr, "no server answers at "+address) {
		t.Errorf("without a server: %+v", got)
	}
	if got := runToEnd(t, "healthcheck", "--listen", "127.0.0.1:0"); got.code != cli.ExitUsage {
		t.Errorf("with port 0: %+v", got)
	}
}

// checkedInTime runs a health check until one ends within healthWait: the machine itself may be
// slow.
func checkedInTime(t *testing.T, check func() result) result {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		began := time.Now()
		got := check()
		if time.Since(began) < healthWait || time.Now().After(deadline) {
			return got
		}
	}
}

func TestHealthcheckOfAServerThatIsNotReady(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"The store takes no writes","code":503}}`: "is not ready: The store takes no writes",
		"<html>": "is not ready: 503 Service Unavailable",
	} {
		var path string
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(body))
		}))
		defer server.Close()
		got := checkedInTime(t, func() result {
			return runToEnd(t, "healthcheck", "--listen", server.Listener.Addr().String(), "--tls-cert", "server.pem")
		})
		if got.code != cli.ExitNo || !strings.Contains(got.stderr, want) || path != "/readyz" {
			t.Errorf("%s: %+v", body, got)
		}
	}
}
