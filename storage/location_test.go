package storage_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"moorage/storage"
)

func TestNormalise(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"file:/tmp/a":             "file:///tmp/a",
		"file:///tmp/a":           "file:///tmp/a",
		"file:////tmp//a//":       "file:///tmp/a",
		"file://localhost/tmp/a":  "file:///tmp/a",
		"FILE://LOCALHOST/tmp/a/": "file:///tmp/a",
		"file:///tmp/./a/.":       "file:///tmp/a",
		"/tmp/a":                  "file:///tmp/a",
		"/tmp//a/":                "file:///tmp/a",
		"/":                       "file:///",
		"file:/":                  "file:///",
		"file:///":                "file:///",
		"file:///tmp/a%20b":       "file:///tmp/a%20b",
		"file:///tmp/a b":         "file:///tmp/a b",
		"file:///tmp/100%":        "file:///tmp/100%",
		"file:///tmp/%2e%2E/é:+*": "file:///tmp/%2e%2E/é:+*",
		"file:///tmp/...":         "file:///tmp/...",
		"memory:/a":               "memory:///a",
		"memory:///a/":            "memory:///a",
		"memory://x/a":            "memory://x/a",
		"memory://x":              "memory://x/",
		"s3://bucket":             "s3://bucket/",
		"s3://bucket/":            "s3://bucket/",
		"s3a://bucket/a/":         "s3://bucket/a",
		"S3N://bucket/a":          "s3://bucket/a",
		"s3://bucket/a%2Fb//c":    "s3://bucket/a%2Fb//c",
		"s3://bucket//a":          "s3://bucket//a",
		"s3://Bucket/A":           "s3://Bucket/A",
		"gs://bucket":             "gs://bucket/",
		"GS://bucket/a%2Fb//c/":   "gs://bucket/a%2Fb//c",
		"gs://bucket//a":          "gs://bucket//a",

		"abfss://c-1@account.dfs.core.windows.net":             "abfss://c-1@account.dfs.core.windows.net/",
		"abfss://c-1@account.dfs.core.windows.net/":            "abfss://c-1@account.dfs.core.windows.net/",
		"ABFSS://C-1@Account.DFS.core.Windows.net/A/b/":        "abfss://c-1@account.dfs.core.windows.net/A/b",
		"abfs://c-1@account.dfs.core.windows.net/a":            "abfss://c-1@account.dfs.core.windows.net/a",
		"wasb://c-1@account.blob.core.windows.net/a":           "abfss://c-1@account.dfs.core.windows.net/a",
		"wasbs://c-1@account.blob.core.windows.net/a%20b/..c":  "abfss://c-1@account.dfs.core.windows.net/a%20b/..c",
		"abfss://c-1@account.dfs.core.chinacloudapi.cn/é":      "abfss://c-1@account.dfs.core.chinacloudapi.cn/é",
		"wasbs://c-1@account.z01.blob.storage.azure.net/a.b/c": "abfss://c-1@account.z01.dfs.storage.azure.net/a.b/c",
	} {
		got, err := storage.Normalise(location)
		if err != nil || got != want {
			t.Errorf("Normalise(%q) = %q, %v; want %q", location, got, err, want)
		}
		again, err := storage.Normalise(got)
		if err != nil || again != got {
			t.Errorf("Normalise(%q) = %q, %v; want no change", got, again, err)
		}
	}
}

// TestParseFile: in the location of a file, '?' and '#' are ordinary bytes, whatever the spelling
// of the location.
func TestParseFile(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"file:/a?b": "file:///a?b", "/a#b/": "file:///a#b", "s3a://b/a?versionId=1": "s3://b/a?versionId=1",
		"gs://b/p=?/#": "gs://b/p=?/#", "s3://b/a": "s3://b/a",
	} {
		if got, err := storage.NormaliseFile(location); err != nil || got != want {
			t.Errorf("NormaliseFile(%q) = %q, %v; want %q", location, got, err, want)
		}
	}
	for _, location := range []string{"", "a?b", "s3://b/../a?b", "file:///a\x00b", "file:///a\xffb"} {
		if got, err := storage.ParseFile(location); !errors.Is(err, storage.ErrLocation) {
			t.Errorf("ParseFile(%q) = %+v, %v; want ErrLocation", location, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, location := range []string{
		"", "a", "a/b", "./a", "../a", "~/a", ":/a", "file", "file:", "file://", "file:a", "file:a/b", "file://a",
		"file://host/a", "file://localhost", "//host/a", "//", "s3:/a", "s3:///a", "s3://", "memory:", "memory://", "memory:a",
		"http://host/a", "hdfs://host/a", "C:/a", `C:\a`, "a/b:c",
		"file:///tmp/..", "file:///../tmp", "/tmp/../a", "s3://b/../a", "s3://b/a/./b", "gs:/a", "gs:///a", "gs://", "gs://b/../a", "gs://b/a/./b", "memory://x/..",
		"file:///a?b", "file:///a#b", "/a?b", "/a#b", "s3://b/a?versionId=1",
		"file:///a\x00b", "file:///a\nb", "file:///a\x1fb", "file:///a\x7fb", "file:///a\u0085b", "file:///a\xffb",
		"file:///" + strings.Repeat("a", storage.LocationBytesMax),

		"abfss://account.dfs.core.windows.net/a", "abfss://c-1@account.dfs.core.windows.net:443/a", "abfss:/a",
		"abfss://c-1@account/a", "abfss://c-1@account.dfs/a", "abfss://c-1@account.core.windows.net/a",
		"abfss://c-1@account.file.core.windows.net/a", "abfss://c-1@account.z1.dfs.core.windows.net/a",
		"abfss://c-1@ac.dfs.core.windows.net/a", "abfss://c-1@acc-ount.dfs.core.windows.net/a",
		"abfss://c-1@@account.dfs.core.windows.net/a", "abfss://c-1@account.dfs.core..net/a",
		"abfss://c-1@account.dfs.core.windows.net./a", "abfss://$root@account.dfs.core.windows.net/a",
		"abfss://c--1@account.dfs.core.windows.net/a", "abfss://c1-@account.dfs.core.windows.net/a",
		"abfss://c_1@account.dfs.core.windows.net/a", "abfss://\u212A-1@account.dfs.core.windows.net/a",
		"abfss://c-1@account.dfs.core.windows.net/a//b", "abfss://c-1@account.dfs.core.windows.net//a",
		"abfss://c-1@account.dfs.core.windows.net/a./b", "abfss://c-1@account.dfs.core.windows.net/a...",
		`abfss://c-1@account.dfs.core.windows.net/a\b`, "abfss://c-1@account.dfs.core.windows.net/a/../b",
		"https://account.dfs.core.windows.net/c-1/a",
	} {
		if parsed, err := storage.Parse(location); !errors.Is(err, storage.ErrLocation) {
			t.Errorf("Parse(%q) = %+v, %v; want ErrLocation", location, parsed, err)
		}
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"file:/a/": "file:/a", "file:///a//": "file:///a", "file:///": "file://", "s3://b/": "s3://b", "/": "/", "//": "/", "": "",
		"file:/a": "file:/a", "s3://b/a%20/": "s3://b/a%20",
	} {
		if got := storage.Trim(location); got != want {
			t.Errorf("Trim(%q) = %q, want %q", location, got, want)
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"file:/a/": "file:/a/x/y", "file:///a": "file:///a/x/y", "file:///": "file:///x/y", "file:/": "file:/x/y",
		"/": "/x/y", "s3://b//": "s3://b/x/y", "s3a://b/c": "s3a://b/c/x/y",
	} {
		if got := storage.Join(location, "x", "y"); got != want {
			t.Errorf("Join(%q, x, y) = %q, want %q", location, got, want)
		}
	}
	if got := storage.Join("/"); got != "/" {
		t.Errorf("Join(/) = %q", got)
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"orders": "orders", "Orders_2.v-1": "Orders_2.v-1", "a b": "a%20b", "é": "%C3%A9", "100%": "100%25", ".": "%2E", "..": "%2E%2E",
		"...": "...", ".a": ".a", "a/b": "a%2Fb", "a\x00b\x1f": "a%00b%1F", "~": "%7E", "?#*[]": "%3F%23%2A%5B%5D", "a:b+c=d": "a%3Ab%2Bc%3Dd",
	} {
		got := storage.Escape(name)
		if got != want {
			t.Errorf("Escape(%q) = %q, want %q", name, got, want)
		}
		for _, root := range []string{"file:///w", "s3://w", "abfss://c-1@account.dfs.core.windows.net/w"} {
			location := storage.Join(root, storage.EscapeBelow(root, name))
			if normal, err := storage.Normalise(location); err != nil || normal != location {
				t.Errorf("Normalise(%q) = %q, %v", location, normal, err)
			}
		}
	}
}

func TestEscapeBelow(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for name, want := range map[string]string{
		"orders": "orders", "a b": "a=20b", "a=20b": "a=3D20b", "a%20b": "a=2520b", "é": "=C3=A9", ".": "=2E",
		"..": "=2E=2E", "...": "..=2E", "a.": "a=2E", "a=2E": "a=3D2E", "a.b": "a.b",
	} {
		got := storage.EscapeBelow("ABFS://c-1@account.dfs.core.windows.net/w", name)
		if got != want {
			t.Errorf("EscapeBelow(%q) = %q, want %q", name, got, want)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("EscapeBelow gives %q for %q and %q", got, name, other)
		}
		seen[got] = name
		if other := storage.EscapeBelow("s3://b/w", name); other != storage.Escape(name) {
			t.Errorf("EscapeBelow(%q) = %q in S3, want %q", name, other, storage.Escape(name))
		}
	}
}

func TestEscapeLongNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, letter := range []string{"a", "é", "日"} {
		for n := 1; n < 300; n++ {
			name := strings.Repeat(letter, n)
			got := storage.Escape(name)
			if len(got) > 200 {
				t.Fatalf("Escape(%d × %s) has %d bytes", n, letter, len(got))
			}
			if other, ok := seen[got]; ok {
				t.Fatalf("Escape gives %q for %q and %q", got, name, other)
			}
			seen[got] = name
			if kept, _, isCut := strings.Cut(got, "~"); isCut && letter != "a" && len(kept)%3 != 0 {
				t.Fatalf("Escape(%d × %s) = %q cuts an escape", n, letter, got)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		root, location string
		want           bool
	}{
		{"file:///a", "/a/b", true},
		{"/a/", "file:/a", true},
		{"file:///a", "file:///ab", false},
		{"file:///a/b", "file:///a", false},
		{"file:///", "file:///a", true},
		{"file:///a", "memory:///a/b", false},
		{"s3://b", "s3a://b/x", true},
		{"s3://b", "s3://bc/x", false},
		{"s3://b/x", "s3://b/x//y", true},
		{"memory://x", "memory:///x", false},
		{"abfss://c-1@account.dfs.core.windows.net/a", "wasbs://c-1@account.blob.core.windows.net/a/b", true},
		{"abfss://c-1@account.dfs.core.windows.net/a", "abfss://c-1@account.dfs.core.windows.net/ab", false},
		{"abfss://c-1@account.dfs.core.windows.net/a", "abfss://c-2@account.dfs.core.windows.net/a", false},
	} {
		if got, err := storage.Within(row.root, row.location); err != nil || got != row.want {
			t.Errorf("Within(%q, %q) = %v, %v", row.root, row.location, got, err)
		}
	}
	for _, pair := range [][2]string{{"a", "/a"}, {"/a", "a"}, {"/a", "/a/../b"}} {
		if _, err := storage.Within(pair[0], pair[1]); !errors.Is(err, storage.ErrLocation) {
			t.Errorf("Within(%q) = %v, want ErrLocation", pair, err)
		}
	}
}

func TestAncestors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		location string
		want     []string
	}{
		{"file:/a/b/c/", []string{"file:///a/b", "file:///a"}},
		{"/a", nil},
		{"/", nil},
		{"s3a://b/x//y", []string{"s3://b/x"}},
		{"s3://b//x/y", []string{"s3://b//x"}},
		{"s3://b/x", nil},
		{"memory://a/b/c", []string{"memory://a/b"}},
	} {
		place, err := storage.Parse(row.location)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, folder := range place.Ancestors() {
			got = append(got, folder.String())
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%q lies in %q, want %q", row.location, got, row.want)
		}
	}
}

func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{"file:/a", "file:////a//./b/", "/a%2F", "s3://b//a//", "gs://b//a//", "memory://x", "file://localhost/a",
		"wasb://C-1@account.blob.core.windows.net/a/b", "abfss://c@a.z01.dfs.x/a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, location string) {
		normal, err := storage.Normalise(location)
		if err != nil {
			return
		}
		if again, err := storage.Normalise(normal); err != nil || again != normal {
			t.Fatalf("Normalise(%q) = %q, and that gives %q, %v", location, normal, again, err)
		}
		joined, err := storage.Normalise(storage.Join(location, "x"))
		if err != nil && len(location) < storage.LocationBytesMax-2 {
			t.Fatalf("Join(%q, x): %v", location, err)
		}
		if err != nil {
			return
		}
		inner, err := storage.Parse(joined)
		if err != nil {
			t.Fatalf("Parse(%q): %v", joined, err)
		}
		outer, _ := storage.Parse(normal)
		if above := inner.Ancestors(); outer.Path != "/" && (len(above) == 0 || above[0] != outer) {
			t.Fatalf("%q lies in %q, not in %q", joined, above, normal)
		}
	})
}
