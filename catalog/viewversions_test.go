package catalog_test

import (
	"errors"
	"path"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/testkit/catalogkit"
)

// threeViewVersions creates the view v with query 1, and then sets query 2 and a property, an hour
// apart. It returns the versions.
func threeViewVersions(f *catalogkit.Fixture) []*catalog.View {
	f.T.Helper()
	all := []*catalog.View{f.MakeView("v")}
	for _, request := range []catalog.ReplaceViewRequest{
		catalogkit.NewQuery(f.T, `[]`, "select 2"), catalogkit.SetViewProperty(f.T, "k", "v"),
	} {
		f.Clock.Advance(time.Hour)
		next, err := f.ReplaceView(f.Ctx, ident("v"), request)
		if err != nil {
			f.T.Fatal(err)
		}
		all = append(all, next)
	}
	return all
}

// The versions of a view are found by their distance from the present version, by file, by time and
// by change, even after a rename. They are also found by the names in the view's history.
func TestVersionsOfAView(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	all := threeViewVersions(f)
	f.Clock.Advance(time.Hour)
	must(t, f.RenameView(f.Ctx, ident("v"), ident("w")))
	renamed, err := f.Directory.Find(f.Ctx, directory.View(), ident("w"))
	must(t, err)
	change := renamed.Pointer.Last.Change.String()
	for text, want := range map[string]int{
		"now": 2, "now~0": 2, "now~1": 1, "now~2": 0, path.Base(all[0].MetadataLocation): 0, path.Base(all[2].MetadataLocation): 2,
		"0s": 2, "150m": 0, "90m": 1, change: 2, change[:8]: 2,
	} {
		found, err := f.LoadViewVersion(f.Ctx, ident("w"), version(f, text))
		if err != nil || found.Location != all[want].MetadataLocation || string(found.Document.Raw()) != string(all[want].Document.Raw()) {
			t.Errorf("%s is %s, %v; want version %d", text, found.Location, err, want)
		}
	}
	for text, want := range map[string]moorage.Kind{
		"now~3": moorage.KindNotFound, "1.metadata.json": moorage.KindNotFound, "2001-01-01T00:00:00Z": moorage.KindNotFound,
		"ffffff": moorage.KindNotFound, "1": moorage.KindBadRequest,
	} {
		_, err := f.LoadViewVersion(f.Ctx, ident("w"), version(f, text))
		catalogkit.WantKind(t, err, want)
	}
	_, err = f.LoadViewVersion(f.Ctx, ident("v"), version(f, "now"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchView)
	must(t, f.Files.Delete(f.Ctx, all[0].MetadataLocation))
	_, err = f.LoadViewVersion(f.Ctx, ident("w"), version(f, "now~2"))
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	found, err := f.DiffViews(f.Ctx, ident("w"), version(f, "now~1"), version(f, "now"))
	if err != nil || found.SQL["spark"][1] != nil || found.Properties.Set["k"][1] == nil || found.From.Location != all[1].MetadataLocation {
		t.Errorf("the difference is %+v, %v", found, err)
	}
}

// A rollback of a view is a commit, and another rollback undoes it.
func TestRollbackOfAView(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		asked    catalog.RollbackRequest
		to       string
		want     int // the current version
		property bool
		same     bool // true if nothing is committed
	}{
		{catalog.RollbackRequest{}, "now~2", 1, true, false},
		{catalog.RollbackRequest{}, "1", 1, true, false},
		{catalog.RollbackRequest{}, "150m", 1, true, false},
		{catalog.RollbackRequest{All: true}, "now~2", 1, false, false},
		{catalog.RollbackRequest{All: true}, "now~1", 2, false, false},
		{catalog.RollbackRequest{}, "now~1", 2, true, true},
		{catalog.RollbackRequest{DryRun: true}, "now~2", 2, true, true},
	} {
		f := catalogkit.New(t)
		before := threeViewVersions(f)
		f.Clock.Advance(time.Hour)
		tt.asked.To = version(f, tt.to)
		done, err := f.RollbackView(f.Ctx, ident("v"), tt.asked)
		if err != nil {
			t.Errorf("%s: %v", tt.to, err)
			continue
		}
		_, has := done.View.Document.Property("k")
		if done.View.Document.CurrentVersionID() != tt.want || has != tt.property || (done.View.Location == done.Was.Location) != tt.same {
			t.Errorf("%s with %+v: version %d, with the property: %v, from %s to %s", tt.to, tt.asked, done.View.Document.CurrentVersionID(), has, done.Was.Location, done.View.Location)
		}
		loaded, err := f.LoadView(f.Ctx, ident("v"))
		if err != nil || loaded.MetadataLocation != done.View.Location || done.Was.Location != before[2].MetadataLocation {
			t.Errorf("%s: the view is at %v, %v", tt.to, loaded, err)
		}
		if tt.same {
			continue
		}
		back, err := f.RollbackView(f.Ctx, ident("v"), catalog.RollbackRequest{To: version(f, path.Base(done.Was.Location)), All: true})
		if _, has := back.View.Document.Property("k"); err != nil || back.View.Document.CurrentVersionID() != 2 || !has {
			t.Errorf("%s: taken back, %v", tt.to, err)
		}
		f.WantClean()
	}
}

// Impossible rollbacks of a view are refused, and change nothing. A rollback fails if another
// commit comes in between, even if that only sets a property, and even if it comes while the new
// file is written.
func TestRollbackOfAViewRefused(t *testing.T) {
	t.Parallel()
	var creates catalogkit.Hook
	f := catalogkit.New(t, creates.OnCreate)
	before := threeViewVersions(f)
	for text, want := range map[string]moorage.Kind{
		"3": moorage.KindNotFound, "none": moorage.KindNotFound, "now~9": moorage.KindNotFound,
	} {
		_, err := f.RollbackView(f.Ctx, ident("v"), catalog.RollbackRequest{To: version(f, text)})
		catalogkit.WantKind(t, err, want)
	}
	for _, asked := range []catalog.RollbackRequest{
		{To: version(f, "1"), All: true}, {To: version(f, "now~2"), Ref: "main"}, {To: version(f, "now~2"), Any: true},
	} {
		_, err := f.RollbackView(f.Ctx, ident("v"), asked)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
	_, err := f.RollbackView(f.Ctx, ident("v"), catalog.RollbackRequest{To: version(f, "now~2"), From: before[1].MetadataLocation})
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	var during error
	other := f.Other(f.Store)
	creates.Once(func() {
		_, during = other.ReplaceView(f.Ctx, ident("v"), catalogkit.SetViewProperty(t, "other", "yes"))
	})
	_, err = f.RollbackView(f.Ctx, ident("v"), catalog.RollbackRequest{To: version(f, "now~2")})
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	loaded, err := f.LoadView(f.Ctx, ident("v"))
	_, set := loaded.Document.Property("other")
	if errors.Join(err, during) != nil || loaded.Document.CurrentVersionID() != 2 || !set {
		t.Errorf("the view is %s, %v, %v", loaded.Document.Raw(), err, during)
	}
}

// A rollback of a view that is repeated with its key gets the same answer.
func TestRollbackOfAViewAgain(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	threeViewVersions(f)
	key := catalogkit.KeyOf("1")
	var first catalog.RolledBackView
	for again := range 2 {
		done, err := f.Keyed(&key).RollbackView(f.Ctx, ident("v"), catalog.RollbackRequest{To: version(f, "1")})
		if err != nil {
			t.Fatal(err)
		}
		if again == 0 {
			first = done
			_, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.SetViewProperty(t, "other", "yes"))
			must(t, err)
			continue
		}
		if !done.IsEmpty() || len(done.Warnings) != 1 || done.View.Location != first.View.Location {
			t.Errorf("again: %s, from %s to %s", done.Updates, done.Was.Location, done.View.Location)
		}
	}
}
