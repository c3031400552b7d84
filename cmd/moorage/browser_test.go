package main

import (
	"slices"
	"testing"
)

// A browser opens only if a person would see it.
func TestBrowserCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		system  string
		environ []string
		want    []string
	}{
		{"linux", []string{"DISPLAY=:0"}, []string{"xdg-open"}},
		{"linux", []string{"WAYLAND_DISPLAY=wayland-0", "CI="}, []string{"xdg-open"}},
		{"linux", nil, nil},
		{"linux", []string{"DISPLAY="}, nil},
		{"linux", []string{"DISPLAY=:0", "SSH_CONNECTION=192.0.2.1 50000 192.0.2.2 22"}, nil},
		{"linux", []string{"DISPLAY=:0", "CI=true"}, nil},
		{"darwin", nil, []string{"open"}},
		{"darwin", []string{"CI=1"}, nil},
		{"windows", nil, []string{"rundll32", "url.dll,FileProtocolHandler"}},
	} {
		if got := browserCommand(c.system, c.environ); !slices.Equal(got, c.want) {
			t.Errorf("%s with %q: %q, want %q", c.system, c.environ, got, c.want)
		}
	}
}
