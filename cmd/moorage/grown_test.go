package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"moorage/storage/file"
	"moorage/testkit/tablefiles"
)

// grownTable is a test table on a local disk, with snapshots whose files exist.
type grownTable struct {
	*tablefiles.History
	server   *served
	location string
}

// growTable creates a table with the given number of snapshots. age is the age of the first.
func (s *served) growTable(t *testing.T, age time.Duration, snapshots int) grownTable {
	t.Helper()
	location := regexp.MustCompile(`"location":"([^"]+)"`).FindStringSubmatch(s.makeTable(t))[1]
	files, err := file.New([]string{location})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-age).UnixMilli()
	table := grownTable{tablefiles.New(t, files, location, rand.New(rand.NewPCG(1, 1)), began), s, location}
	for range snapshots {
		table.grow(t)
	}
	return table
}

// grow commits one more snapshot.
func (g grownTable) grow(t *testing.T) {
	t.Helper()
	body := fmt.Sprintf(`{"requirements":[],"updates":[%s]}`, strings.Join(g.Append("main", 1), ","))
	if code, answer := g.server.request(t, "POST", tablePath, body); code != http.StatusOK {
		t.Fatalf("commit: %d %s", code, answer)
	}
}
