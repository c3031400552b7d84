package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage/testkit/fakecloud"
)

const noFirstWarehouse = "the warehouse default cannot be made"

// TestFirstWarehouseWaits checks that a server starts although the storage of the warehouse default
// fails. The server reports the failure, and creates the warehouse when the storage answers.
func TestFirstWarehouseWaits(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "lake")
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // a file in place of the folder
		t.Fatal(err)
	}
	s := startServe(t, "--data", t.TempDir(), "--default-location", "file://"+folder)
	if log := s.stderr.String(); strings.Count(log, noFirstWarehouse) != 1 || !strings.Contains(log, "level=ERROR") {
		t.Errorf("log:\n%s", log)
	}
	if code, body := s.request(t, "GET", "/readyz", ""); code != http.StatusOK || !strings.Contains(body, `"warehouse default"`) || strings.Contains(body, folder) {
		t.Errorf("ready: %d %s", code, body)
	}
	if code, body := s.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusNotFound {
		t.Errorf("create a namespace in no warehouse: %d %s", code, body)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(t, "there is a warehouse default now")
	s.makeTable(t)
	if code, body := s.request(t, "GET", "/readyz", ""); code != http.StatusOK || strings.Contains(body, `"warehouse default"`) {
		t.Errorf("ready: %d %s", code, body)
	}
}

// TestFirstWarehouseByOperator checks that, if the bucket does not exist, the operator can create
// the warehouse default in another bucket, and the server leaves that alone.
func TestFirstWarehouseByOperator(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	s := startServe(t, append(inS3(defaultOption, server.Endpoint), "--data", t.TempDir(), "--default-location", "s3://no-such-bucket")...)
	if log := s.stderr.String(); strings.Count(log, noFirstWarehouse) != 1 {
		t.Errorf("log:\n%s", log)
	}
	location := "s3://" + server.NewBucket(t)
	if got := runToEnd(t, append([]string{"warehouse", "create", defaultWarehouse, "--location", location, "--uri", s.uri}, inS3(ownOption, server.Endpoint)...)...); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	s.makeTable(t)
	s.awaitLog(t, `there is a warehouse default now" location=`+location)
}

// TestFirstWarehouseCannotBeOpened checks that a server starts although the storage of its existing
// warehouse default cannot be opened.
func TestFirstWarehouseCannotBeOpened(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), filepath.Join(t.TempDir(), "lake")
	flags := []string{"--data", data, "--default-location", "file://" + folder}
	startServe(t, flags...).stop()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, flags...)
	s.awaitLog(t, "the storage of a warehouse fails")
	if code, body := s.request(t, "GET", "/readyz", ""); code != http.StatusOK {
		t.Errorf("ready: %d %s", code, body)
	}
}
