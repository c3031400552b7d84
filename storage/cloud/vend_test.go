package cloud_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"moorage/storage"
	"moorage/storage/cloud"
)

var errRefused = errors.New("refused")

// bucket is a storage that enforces the scope of credentials, apart from its fault.
type bucket struct {
	names map[string]bool
	fault func(method, name string, write bool) (allowed, decided bool)
}

// key is an engine with access to a folder of a bucket. Without a folder, it may do everything.
type key struct {
	*bucket
	folder string
	write  bool
}

func (k key) allowed(method, name string) error {
	if k.folder == "" {
		return nil
	}
	if allowed, decided := k.fault(method, name, k.write); decided {
		if allowed {
			return nil
		}
		return errRefused
	}
	if !strings.HasPrefix(name, k.folder+"/") || !k.write && (method == "write" || method == "delete") {
		return errRefused
	}
	return nil
}

func (k key) Read(_ context.Context, name string) error { return k.allowed("read", name) }

func (k key) List(_ context.Context, prefix string) error { return k.allowed("list", prefix) }

func (k key) Write(_ context.Context, name string) error {
	if err := k.allowed("write", name); err != nil {
		return err
	}
	k.names[name] = true
	return nil
}

func (k key) Delete(_ context.Context, name string) error {
	if err := k.allowed("delete", name); err != nil {
		return err
	}
	delete(k.names, name)
	return nil
}

// TestVendingProbe tries credentials of a correct bucket, and of buckets with one fault each. The
// probe leaves nothing behind in any of them.
func TestVendingProbe(t *testing.T) {
	t.Parallel()
	const folder = "wh/moorage-probe-1a"
	beside := func(name string) bool { return strings.HasPrefix(name, folder+"y/") }
	otherCase := func(name string) bool { return strings.HasPrefix(name, "wh/MOORAGE-PROBE-1A/") }
	in := func(name string) bool { return strings.HasPrefix(name, folder+"/") }
	rows := map[string]struct {
		fault func(method, name string, write bool) (allowed, decided bool)
		want  string // "" if the bucket is correct
		kind  error
	}{
		"sound": {fault: func(string, string, bool) (bool, bool) { return false, false }},
		"a prefix counts as the folder": {
			fault: func(_, name string, _ bool) (bool, bool) { return true, beside(name) },
			want:  "read in a sibling folder whose name begins with their folder's name", kind: storage.ErrUnenforced,
		},
		"cases are the same": {
			fault: func(_, name string, _ bool) (bool, bool) { return true, otherCase(name) },
			want:  "read in a sibling folder whose name differs from their folder's only in case",
			kind:  storage.ErrUnenforced,
		},
		"a sibling can be written": {
			fault: func(method, name string, _ bool) (bool, bool) { return true, beside(name) && method == "write" },
			want:  "write in a sibling folder whose name begins with", kind: storage.ErrUnenforced,
		},
		"a file in a sibling can be replaced": {
			fault: func(method, name string, _ bool) (bool, bool) {
				return true, name == folder+"y"+cloud.ProbeData && method == "write"
			},
			want: "replace a file in a sibling folder whose name begins with", kind: storage.ErrUnenforced,
		},
		"a sibling can be listed": {
			fault: func(method, name string, _ bool) (bool, bool) { return true, beside(name) && method == "list" },
			want:  "list a sibling folder whose name begins with", kind: storage.ErrUnenforced,
		},
		"a sibling can be deleted": {
			fault: func(method, name string, _ bool) (bool, bool) { return true, beside(name) && method == "delete" },
			want:  "delete in a sibling folder whose name begins with", kind: storage.ErrUnenforced,
		},
		"readers can write": {
			fault: func(method, name string, write bool) (bool, bool) {
				return true, in(name) && method == "write" && !write
			},
			want: "write, although they are read-only", kind: storage.ErrUnenforced,
		},
		"readers can delete": {
			fault: func(method, name string, write bool) (bool, bool) {
				return true, in(name) && method == "delete" && !write
			},
			want: "delete, although they are read-only", kind: storage.ErrUnenforced,
		},
		"the whole bucket can be listed": {
			fault: func(method, name string, _ bool) (bool, bool) { return true, method == "list" && name == "" },
			want:  "list the whole bucket", kind: storage.ErrUnenforced,
		},
		"writers cannot write": {
			fault: func(method, name string, _ bool) (bool, bool) { return false, in(name) && method == "write" },
			want:  "the credentials that the test makes cannot write in the folder they are for. Hint: refused",
			kind:  errRefused,
		},
		"readers cannot list": {
			fault: func(method, name string, write bool) (bool, bool) {
				return false, in(name) && method == "list" && !write
			},
			want: "cannot list the folder they are for", kind: errRefused,
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bucket{names: map[string]bool{"wh/other": true}, fault: row.fault}
			err := cloud.VendingProbe{
				Folder: folder, Storage: "cloud", Place: "the bucket b", Maker: "the test", Hint: ". Hint",
				Own: key{bucket: b},
				Vend: func(_ context.Context, write bool) (cloud.Engine, error) {
					return key{b, folder, write}, nil
				},
				Forbidden: func(engine cloud.Engine, _ bool) []cloud.Trial {
					return []cloud.Trial{{What: "list the whole bucket", Do: engine.List, Name: ""}}
				},
				IsRefused: func(err error) bool { return errors.Is(err, errRefused) },
				Delete: func(_ context.Context, names []string) error {
					for _, name := range names {
						delete(b.names, name)
					}
					return nil
				},
			}.Run(t.Context())
			if row.want == "" && err != nil {
				t.Errorf("Run = %v", err)
			}
			if row.want != "" && (!errors.Is(err, row.kind) || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("Run = %v, want %q of the kind %v", err, row.want, row.kind)
			}
			if left := slices.Collect(maps.Keys(b.names)); !slices.Equal(left, []string{"wh/other"}) {
				t.Errorf("the probe left %q", left)
			}
		})
	}
}

// TestVendingProbeOfABrokenServer: a failure that is not a refusal proves nothing about
// credentials.
func TestVendingProbeOfABrokenServer(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	b := &bucket{names: map[string]bool{}, fault: func(string, string, bool) (bool, bool) { return false, false }}
	probe := cloud.VendingProbe{
		Folder: "f", Storage: "cloud", Place: "the bucket b", Own: key{bucket: b},
		Vend: func(_ context.Context, write bool) (cloud.Engine, error) { return key{b, "f", write}, nil },
		// No error counts as a refusal.
		IsRefused: func(error) bool { return false },
		Delete:    func(context.Context, []string) error { return broken },
	}
	err := probe.Run(t.Context())
	if !errors.Is(err, errRefused) || errors.Is(err, storage.ErrUnenforced) || !errors.Is(err, broken) {
		t.Errorf("Run = %v, want the failure of a trial, and that of the deletion", err)
	}
	probe.Vend = func(context.Context, bool) (cloud.Engine, error) { return nil, broken }
	if err := probe.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run = %v, want the failure to vend", err)
	}
}
