package transfers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"moorage/testkit/servers"
)

const (
	// openingCounter is the initial counter of each table.
	openingCounter = "1000"
	// readsMax is the maximum number of times that Read loads all tables.
	readsMax = 100
)

// Bank is a namespace whose tables have counters. Many goroutines may read its fields, but only one
// at a time may call its methods.
type Bank struct {
	Namespace string
	Folder    string // the folder with the files of the tables
	Tables    []string
	Book      *Book
	Recorder  *Recorder
}

// Open creates a namespace and some tables in it. The tables' files are in folder.
func Open(ctx context.Context, client *servers.Client, namespace, folder string, tables int) (*Bank, error) {
	b := &Bank{Namespace: namespace, Folder: folder, Book: NewBook(), Recorder: &Recorder{}}
	made := []servers.Answer{client.CreateNamespace(ctx, namespace)}
	for n := range tables {
		name := fmt.Sprintf("t%02d", n)
		made = append(made, client.Create(ctx, namespace, name, map[string]string{PropCounter: openingCounter}))
		b.Tables = append(b.Tables, name)
	}
	for _, a := range made {
		if a.Outcome != servers.Acknowledged {
			return nil, fmt.Errorf("open a bank: %d %s", a.Status, a.Text)
		}
	}
	return b, b.Read(ctx, client)
}

// Read adds the present versions of all tables to the book, including tables that transfers have
// created. These versions were all current at one moment, even if late transfers still happen.
func (b *Bank) Read(ctx context.Context, client *servers.Client) error {
	var before map[string]string
	for range readsMax {
		names, err := client.List(ctx, b.Namespace)
		if err != nil {
			return err
		}
		now := map[string]string{}
		for _, table := range names {
			if !slices.Contains(b.Tables, table) && b.Book.chains[table] != nil {
				continue // a transfer made the table, and nothing changes it
			}
			a := client.Load(ctx, b.Namespace, table)
			if a.Outcome != servers.Acknowledged {
				return fmt.Errorf("load %s.%s: %d %s", b.Namespace, table, a.Status, a.Text)
			}
			now[table] = a.Table.Location
		}
		if maps.Equal(before, now) {
			for table, location := range now {
				if err := b.Book.Extend(table, location); err != nil {
					return err
				}
			}
			return nil
		}
		before = now
	}
	return errors.New("the tables do not come to rest")
}

// Leftovers returns the metadata files that only transactions can have written, and that are
// neither a present nor a former version of a known table.
func (b *Bank) Leftovers() ([]string, error) {
	left, err := b.Book.Leftovers(b.Folder)
	return slices.DeleteFunc(left, madeBySingle), err
}
