package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/adls"
	"moorage/storage/gcs"
	"moorage/storage/s3"
)

// While the configuration of one place in S3 cannot be read, other places can still be opened.
func TestOpenS3BesideOneThatHangs(t *testing.T) {
	pipe, there := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "config")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", there)
	t.Setenv("AWS_CONFIG_FILE", pipe)
	all := newStorages(s3.Options{}, gcs.Options{}, adls.Options{}, nil, unwatched())
	open := func(region string) error {
		_, err := all.open(storage.Place{Roots: []string{"s3://bucket/lake"}, Options: map[string]string{s3.OptionRegion: region}})
		return err
	}
	hung := make(chan error, 1)
	go func() { hung <- open("stuck") }()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns once the reader has opened the pipe; the read lasts until writer is closed
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", there)
	other := make(chan error, 1)
	go func() { other <- open("other") }()
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case err := <-hung:
		t.Errorf("opened without its configuration: %v", err)
	case <-time.After(patience):
		t.Error("another place is not opened")
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
	if err := <-hung; err != nil {
		t.Error(err)
	}
}

// unwatched returns a watch whose results are not used.
func unwatched() *storage.Watch {
	return storage.NewWatch(storage.WatchConfig{Ended: func(context.Context, string, string, string, time.Duration) {}})
}

// busyFiles are files with a hanging call.
type busyFiles struct {
	storage.FileStore
	busy, closed bool
}

func (f *busyFiles) Busy() bool { return f.busy }

func (f *busyFiles) Close() error {
	f.closed = true
	return nil
}

// Files with a hanging call stay open when they are given back. Once the call no longer hangs, the
// next giveBack closes them.
func TestLentFilesThatHung(t *testing.T) {
	t.Parallel()
	all := newStorages(s3.Options{}, gcs.Options{}, adls.Options{}, nil, unwatched())
	files := &busyFiles{busy: true}
	all.lent["stuck"] = &lent{files: files, users: 1}
	all.giveBack("stuck", all.lent["stuck"])
	borrow := func() {
		t.Helper()
		_, giveBack, err := all.borrow(storage.Place{Roots: []string{"file://" + t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		giveBack()
	}
	if borrow(); files.closed || len(all.lent) != 1 {
		t.Errorf("closed while a call hangs: %t, %d are kept", files.closed, len(all.lent))
	}
	files.busy = false
	if borrow(); !files.closed || len(all.lent) != 0 {
		t.Errorf("closed: %t, %d are kept", files.closed, len(all.lent))
	}
}

// A place in two kinds of storage has options for both, and each storage gets its own options.
// Options for a kind of storage that the place does not use are refused.
func TestOptionsOfTwoKinds(t *testing.T) {
	t.Parallel()
	all := newStorages(s3.Options{}, gcs.Options{}, adls.Options{}, nil, unwatched())
	options := map[string]string{s3.OptionRegion: "eu-west-1", gcs.OptionProject: "lake"}
	for _, tt := range []struct {
		roots []string
		opens bool
	}{
		{[]string{"gs://bucket/lake", "s3://bucket/lake"}, true},
		{[]string{"gs://bucket/lake"}, false},
		{[]string{"s3://bucket/lake"}, false},
	} {
		if _, err := all.open(storage.Place{Roots: tt.roots, Options: options}); (err == nil) != tt.opens {
			t.Errorf("open %q: %v; want it to open: %t", tt.roots, err, tt.opens)
		}
	}
}
