package recovery_test

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/txlog"
)

// damages returns contents that make the record of a transaction unreadable.
func damages(t *testing.T, e txlog.Entry) map[string]registry.Write {
	t.Helper()
	key := registry.TransactionKey(e.ID)
	whole, err := registry.Encode(e.Transaction)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]registry.Write{
		"another type": registry.Put(key, registry.StatePending, []byte(`{"id":7}`)),
		"empty":        registry.Put(key, registry.StateCommitted, []byte(`{}`)),
		"another's":    registry.Put(key, registry.StatePending, bytes.ReplaceAll(whole, []byte(e.ID.String()), []byte(registry.ID{15: 7}.String()))),
		"of no state":  registry.Put(key, registry.StateLive, whole),
	}
}

func apply(t *testing.T, store registry.Store, writes ...registry.Write) {
	t.Helper()
	if _, err := store.Apply(t.Context(), registry.Batch{Writes: writes}); err != nil {
		t.Fatal(err)
	}
}

// Recovery ends the other transactions. It logs the unreadable one once, and counts it as blocked
// until it is gone.
func TestRecoveryUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		var broken []txlog.Entry
		var others []txlog.Entry
		for range 4 {
			broken = append(broken, r.begin(t, time.Now().Add(-time.Hour)))
			others = append(others, r.begin(t, time.Now().Add(-time.Hour)))
		}
		i := 0
		for name := range damages(t, broken[0]) {
			apply(t, store, damages(t, broken[i])[name])
			i++
		}
		var logs bytes.Buffer
		node := r.node(func(c *recovery.Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
		for range 3 {
			if err := node.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range others {
			if now(t, r.log, e).Exists() {
				t.Error("a transaction was left because another cannot be read")
			}
		}
		wantStats(t, node, recovery.Stats{Unfinished: 4, Blocked: 4, Attempts: 4, Recovered: 4})
		for _, e := range broken {
			if now(t, r.log, e).IsDue(time.Now(), time.Now()) {
				t.Error("a transaction that cannot be read is due")
			}
			if !now(t, r.log, e).Exists() || len(r.asked[e.ID]) > 0 {
				t.Error("a transaction that cannot be read was tried")
			}
			if want := "key=" + registry.TransactionKey(e.ID).String(); strings.Count(logs.String(), want) != 1 {
				t.Errorf("%d times %s in the log, want once", strings.Count(logs.String(), want), want)
			}
		}
		if strings.Count(logs.String(), "level=ERROR") != 4 || !strings.Contains(logs.String(), "moorage doctor forget") {
			t.Errorf("the log says %s", logs.String())
		}
		apply(t, store, registry.Delete(registry.TransactionKey(broken[0].ID)))
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantStats(t, node, recovery.Stats{Unfinished: 3, Blocked: 3, Attempts: 4, Recovered: 4})
	})
}
