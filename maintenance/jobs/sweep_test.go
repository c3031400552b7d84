package jobs_test

import (
	"strings"
	"testing"
	"time"

	"moorage/registry"
)

// Files of a job that never began are deleted a week later. Files of a running job stay, however
// old they are. So do files of other stores.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	must(t, w.jobs.Sweep(w.ctx)) // no job has existed yet
	s := settings(3 * time.Second)
	s.Delay = 100 * 24 * time.Hour
	_, err := w.jobs.Expire(w.ctx, w.table, s, nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	folder := w.job().Folder
	ours, _, _ := strings.Cut(folder, "/"+w.job().ID.String())
	left := []string{
		ours + "/" + registry.ID{15: 1}.String() + "/input-1.json", ours + "/" + registry.ID{15: 1}.String() + "/list-1.json",
		ours + "/" + registry.ID{15: 2}.String() + "/input-1.json",
	}
	others := []string{
		"file:///wh/~moorage/jobs/" + registry.ID{15: 3}.String() + "/" + registry.ID{15: 1}.String() + "/input-1.json",
		"file:///wh/~moorage/owner", tableAt + "/data/x.parquet",
	}
	for _, path := range append(left, others...) {
		must(t, w.files.Create(w.ctx, path, []byte("{}")))
	}
	under := len(w.own())
	w.clock.Advance(7*24*time.Hour - time.Second)
	young := ours + "/" + registry.ID{15: 2}.String() + "/list-2.json"
	must(t, w.files.Create(w.ctx, young, nil))
	must(t, w.jobs.Sweep(w.ctx))
	if got := len(w.own()); got != under+1 {
		t.Errorf("a second too early %d files are left of %d", got, under+1)
	}
	w.clock.Advance(time.Second)
	must(t, w.jobs.Sweep(w.ctx))
	for i, path := range left {
		if w.exists(path) != (i == 2) {
			t.Errorf("%s is there: %v", path, i != 2)
		}
	}
	w.clock.Advance(7 * 24 * time.Hour)
	must(t, w.jobs.Sweep(w.ctx))
	if w.exists(left[2]) || w.exists(young) {
		t.Error("a job's files stay although all are old")
	}
	for _, path := range append(others, w.job().Input.Location, w.job().Lists[0].Location) {
		if !w.exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
}
