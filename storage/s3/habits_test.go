package s3_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage/storage"
)

// TestHabits writes and deletes on servers that support less than Amazon's, or have different
// requirements.
func TestHabits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		habits string
		shows  string // text in the features that validate shows
	}{
		{"", ""},
		{"md5", "bulk deletes of lake with Content-MD5"},
		{"md5ovh", "bulk deletes of lake with Content-MD5"},
		{"nomulti", "one by one"},
		{"nochecksum", "checksums of writes of lake Content-MD5"},
		{"notrailer", ""},
		{"noinm", "conditional writes of lake no"},
		{"nochecksum nomulti noinm notrailer", "one by one"},
	} {
		t.Run(tt.habits, func(t *testing.T) {
			t.Parallel()
			server := newDouble(t, "", strings.Fields(tt.habits)...)
			store := open(t, options(server.URL), "s3://lake/wh")
			if err := store.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if keys := server.keys(); len(keys) > 0 {
				t.Errorf("the probe left %q", keys)
			}
			var locations []string
			for i := range 3 {
				location := fmt.Sprintf("s3://lake/wh/%d", i)
				locations = append(locations, location)
				if err := store.Create(t.Context(), location, []byte("body")); err != nil {
					t.Fatal(err)
				}
				if body, err := storage.ReadAll(t.Context(), store, location, 10); err != nil || string(body) != "body" {
					t.Errorf("read %q, %v", body, err)
				}
			}
			server.takeRequests()
			if err := store.Delete(t.Context(), append(locations, "s3://lake/wh/none")...); err != nil {
				t.Error(err)
			}
			if keys := server.keys(); len(keys) > 0 {
				t.Errorf("left %q", keys)
			}
			if asked := server.takeRequests(); len(asked) != 1 && !strings.Contains(tt.habits, "nomulti") {
				t.Errorf("a way was looked for again: %q", asked)
			}
			if shown := fmt.Sprint(store.Features()); !strings.Contains(shown, tt.shows) || tt.shows == "" && shown != "[]" {
				t.Errorf("validate would show %s, want %q", shown, tt.shows)
			}
			if err := store.ProbeSigning(t.Context()); err != nil {
				t.Errorf("ProbeSigning = %v", err)
			}
			if keys := server.keys(); len(keys) > 0 {
				t.Errorf("left %q", keys)
			}
		})
	}
}
