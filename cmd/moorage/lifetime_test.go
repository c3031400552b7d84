package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLifetimeSetting(t *testing.T) {
	t.Parallel()
	if got := mustLoad(t, nil, nil).KeyLifetime; got != 30*time.Minute {
		t.Errorf("by default %s", got)
	}
	for value, want := range map[string]time.Duration{
		"1s": time.Second, "90m": 90 * time.Minute, "1500ms": 2 * time.Second, "8760h": 365 * 24 * time.Hour,
		"999ms": 0, "0s": 0, "-1m": 0, "8761h": 0, "30": 0, "PT30M": 0,
	} {
		c, err := loadConfig(serveCommand(), []string{"--idempotency-lifetime=" + value}, nil)
		if (err != nil) != (want == 0) || err == nil && c.KeyLifetime != want {
			t.Errorf("%s is %s, %v; want %s", value, c.KeyLifetime, err, want)
		}
	}
}

// Changes are kept as long as is said, and never shorter than keys are honoured.
func TestChangeRetentionSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want time.Duration // 0: refused
	}{
		{[]string{"--change-retention=36h"}, 36 * time.Hour},
		{[]string{"--change-retention=14d"}, 14 * 24 * time.Hour},
		{[]string{"--change-retention=35m"}, 35 * time.Minute},
		{[]string{"--change-retention=34m"}, 0},
		{[]string{"--change-retention=6m", "--idempotency-lifetime=1m"}, 6 * time.Minute},
		{[]string{"--change-retention=0s"}, 0},
	} {
		c, err := loadConfig(serveCommand(), tt.args, nil)
		if (err != nil) != (tt.want == 0) || err == nil && c.ChangeRetention != tt.want {
			t.Errorf("%q is %s, %v; want %s", tt.args, c.ChangeRetention, err, tt.want)
		}
	}
	if got := mustLoad(t, nil, nil).ChangeRetention; got != 0 {
		t.Errorf("by default %s", got)
	}
}

// A server tells clients how long it heeds keys: longer than changes are kept by default, too.
func TestLifetimeIsAdvertised(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{"PT30M": nil, "PT720H": {"--idempotency-lifetime", "720h"}} {
		server := startServe(t, append([]string{"--store", "memory", "--data", t.TempDir()}, args...)...)
		code, body := server.request(t, "GET", "/v1/config", "")
		if code != http.StatusOK || !strings.Contains(body, `"idempotency-key-lifetime":"`+want+`"`) {
			t.Errorf("%v: %d %s, want %s", args, code, body, want)
		}
	}
}

// A change that is sent again to a server that was started again on its folder is answered as before, a refusal too.
func TestKeysSurviveARestart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	server.makeTable(t)
	const commit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"master":"Ada"}}]}`
	requests := []struct{ method, path, body string }{
		{"POST", "/v1/namespaces/harbour/tables/ships", commit},
		{"POST", "/v1/namespaces", createNamespace}, // which is there
		{"DELETE", "/v1/namespaces/harbour/tables/ships", ""},
	}
	answers := func() (all []string) {
		for n, r := range requests {
			code, body := server.request(t, r.method, r.path, r.body, "Idempotency-Key", fmt.Sprintf("01926f3a-7b1c-7def-8123-%012d", n))
			all = append(all, fmt.Sprint(code, body))
		}
		return all
	}
	first := answers()
	server.stop()
	server = startServe(t, "--data", data)
	if again := answers(); !slices.Equal(again, first) {
		t.Errorf("answered\n%q\nand then\n%q", first, again)
	}
}
