package browse_test

import (
	"testing"

	"moorage"
	"moorage/catalog/browse"
	"moorage/testkit"
)

// TestManifests lists the manifests of snapshots, and the files of one of them.
func TestManifests(t *testing.T) {
	t.Parallel()
	j := newJudged(t, nil)
	ask := func(asked browse.ManifestsRequest) browse.ManifestList {
		t.Helper()
		list, err := j.Browse().Manifests(j.ctx, j.ident, asked)
		testkit.Must(t, err)
		return list
	}
	if empty := ask(browse.ManifestsRequest{}); empty.Snapshot != 0 || len(empty.Manifests) > 0 {
		t.Errorf("without a snapshot: %+v", empty)
	}
	j.add(nil, dataFiles(250, 5, 600)...)
	j.add(nil, deleteFiles(3)...)
	first, zero, one, none := int64(1), 0, 1, 2
	list := ask(browse.ManifestsRequest{})
	if list.Snapshot != 2 || len(list.Manifests) != 2 || len(list.Files) > 0 || list.More {
		t.Fatalf("got %+v", list)
	}
	deletes := 0
	for i, m := range list.Manifests {
		if m.Bytes == 0 || m.Path == "" || m.Added == nil || *m.Added == 0 {
			t.Errorf("manifest %d: %+v", i, m)
		}
		if m.Deletes {
			deletes = i
		}
	}
	at := list.Manifests[deletes]
	list = ask(browse.ManifestsRequest{Manifest: &deletes})
	if len(list.Files) != 1 || list.Files[0].Content != "position-deletes" || list.Files[0].Status != "added" || list.Files[0].Rows != 3 || list.FilesMore {
		t.Errorf("files of %+v: %+v", at, list.Files)
	}
	list = ask(browse.ManifestsRequest{Snapshot: &first, Manifest: &zero})
	if list.Snapshot != 1 || len(list.Manifests) != 1 || len(list.Files) != 200 || !list.FilesMore || list.Files[0].Partition != "d_month=2020-01" {
		t.Errorf("files of the first snapshot: %d of them, %+v", len(list.Files), list.Files[:1])
	}
	unknown := int64(77)
	for _, asked := range []browse.ManifestsRequest{{Snapshot: &unknown}, {Snapshot: &first, Manifest: &one}, {Manifest: &none}} {
		if _, err := j.Browse().Manifests(j.ctx, j.ident, asked); moorage.KindOf(err) != moorage.KindNotFound {
			t.Errorf("%+v: %v", asked, err)
		}
	}
	testkit.Must(t, j.files.Delete(j.ctx, at.Path))
	if _, err := j.Browse().Manifests(j.ctx, j.ident, browse.ManifestsRequest{Manifest: &deletes}); moorage.KindOf(err) != moorage.KindNotShown {
		t.Errorf("a manifest that is gone: %v", err)
	}
}
