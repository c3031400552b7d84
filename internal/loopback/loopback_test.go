package loopback_test

import (
	"testing"

	"moorage/internal/loopback"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:8181": true, "localhost.": true, "127.0.0.1": true, "127.1.2.3:80": true,
		"::1": true, "[::1]": true, "[::1]:8181": true, "::ffff:127.0.0.1": true,
		"": false, ":8181": false, "0.0.0.0:8181": false, "[::]:8181": false, "::": false, "10.0.0.1": false,
		"localhost.example.com": false, "127.0.0.1.example.com": false, "notlocalhost": false,
	} {
		if got := loopback.Is(host); got != want {
			t.Errorf("%q: %t, want %t", host, got, want)
		}
	}
}
