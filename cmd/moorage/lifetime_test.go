package main

import (
	"net/http"
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
