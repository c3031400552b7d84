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

// grownTable is the table of a test on a local disk, with snapshots whose files are there.
type grownTable struct {
	*tablefiles.History
	server   *served
	location string
}

// growTable makes a table with some snapshots. The first is as old as age.
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

// grow commits one snapshot more.
func (g grownTable) grow(t *testing.T) {
	t.Helper()
	body := fmt.Sprintf(`{"requirements":[],"updates":[%s]}`, strings.Join(g.Append("main", 1), ","))
	if code, answer := g.server.request(t, "POST", tablePath, body); code != http.StatusOK {
		t.Fatalf("commit: %d %s", code, answer)
	}
}
