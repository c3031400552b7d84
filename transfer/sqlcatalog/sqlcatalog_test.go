package sqlcatalog_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"moorage/testkit/pgserver"
	"moorage/transfer"
	"moorage/transfer/sqlcatalog"
)

// postgres is the PostgreSQL of all tests.
var postgres pgserver.Shared

func TestMain(m *testing.M) { postgres.Main(m) }

// The tables of the first form of JdbcCatalog, of the form with views, and of PyIceberg.
const (
	properties = "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, " +
		"property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))"
	tablesFormat = "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, " +
		"table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000)%s, " +
		"PRIMARY KEY (catalog_name, table_namespace, table_name))"
	first, second = "", ", iceberg_type VARCHAR(5)"
)

// database is an empty database: how a test and the package reach it, and the form of its
// parameters.
type database struct {
	db  *sql.DB
	dsn string
}

func (d database) do(t *testing.T, query string) {
	t.Helper()
	if _, err := d.db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// eachDatabase runs a test over SQLite and over PostgreSQL.
func eachDatabase(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	open := func(t *testing.T, driver, at, dsn string) database {
		t.Helper()
		db, err := sql.Open(driver, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return database{db, dsn}
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "catalog ?#.db")
		test(t, open(t, "sqlite", "file:"+strings.NewReplacer("?", "%3f", "#", "%23", " ", "%20").Replace(file), "sqlite:"+file))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn, err := postgres.Schema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		test(t, open(t, "pgx", dsn, dsn))
	})
}

// TestForms reads both forms of the tables: names of several levels, views, and namespaces.
func TestForms(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, d database) {
		d.do(t, properties)
		d.do(t, fmt.Sprintf(tablesFormat, second))
		d.do(t, "INSERT INTO iceberg_tables VALUES ('mine', 'a.b', 't', 's3://t/1', NULL, 'TABLE'), "+
			"('mine', 'a', 'v', 's3://v/1', NULL, 'VIEW'), ('mine', 'a', 'old', 's3://old/1', NULL, NULL), ('other', 'a', 'x', 's3://x/1', NULL, 'TABLE')")
		d.do(t, "INSERT INTO iceberg_namespace_properties VALUES ('mine', 'a', 'exists', 'true'), ('mine', 'a.b', 'k', 'v')")
		if _, err := sqlcatalog.Open(t.Context(), d.dsn, ""); err == nil || !strings.Contains(err.Error(), "--catalog (mine, other)") {
			t.Errorf("of two catalogs none was named: %v", err)
		}
		c, err := sqlcatalog.Open(t.Context(), d.dsn, "mine")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		got := make(map[string]string)
		err = c.List(t.Context(), func(o transfer.Object) error {
			got[o.Kind()+" "+o.String()] = o.MetadataLocation
			return nil
		})
		if want := "map[table a.b.t:s3://t/1 table a.old:s3://old/1 view a.v:s3://v/1]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("the list is %v, %v", got, err)
		}
		namespaces, err := c.Namespaces(t.Context())
		if want := "[{[a] map[]} {[a b] map[k:v]}]"; err != nil || fmt.Sprint(namespaces) != want {
			t.Errorf("the namespaces are %v, %v", namespaces, err)
		}
		if _, err := c.Load(t.Context(), transfer.Object{Namespace: []string{"a"}, Name: "none"}); !errors.Is(err, transfer.ErrGone) {
			t.Errorf("a missing table: %v", err)
		}
	})
	if _, err := sqlcatalog.Open(context.Background(), "mysql://x", ""); err == nil {
		t.Error("another database was opened")
	}
}

// TestDetachIsExact: while a client commits as JdbcCatalog does, a table is detached. The last
// commit that succeeded is the one with which the table left.
func TestDetachIsExact(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, d database) {
		d.do(t, properties)
		d.do(t, fmt.Sprintf(tablesFormat, first))
		d.do(t, "INSERT INTO iceberg_tables VALUES ('mine', 'a', 't', 'f0', NULL)")
		if strings.HasPrefix(d.dsn, "sqlite") {
			d.do(t, "PRAGMA journal_mode=WAL")
		}
		c, err := sqlcatalog.Open(t.Context(), d.dsn, "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		last, begun := make(chan string), make(chan struct{})
		go func() {
			is := "f0"
			for n := 1; ; n++ {
				next := fmt.Sprint("f", n)
				done, err := d.db.Exec("UPDATE iceberg_tables SET metadata_location = '" + next + "' WHERE catalog_name = 'mine' AND " +
					"table_namespace = 'a' AND table_name = 't' AND metadata_location = '" + is + "'")
				if err != nil && strings.Contains(err.Error(), "locked") {
					n--
					continue
				}
				if err != nil {
					last <- err.Error()
					return
				}
				if count, _ := done.RowsAffected(); count == 0 {
					last <- is
					return
				}
				if is = next; n == 5 {
					close(begun)
				}
			}
		}()
		<-begun
		attempt := transfer.Attempt{Object: transfer.Object{Namespace: []string{"a"}, Name: "t", MetadataLocation: "f0"}}
		left, err := c.Detach(t.Context(), attempt)
		for errors.Is(err, transfer.ErrMoved) {
			attempt.Object = left
			left, err = c.Detach(t.Context(), attempt)
		}
		if err != nil {
			t.Fatal(err)
		}
		if is := <-last; is != left.MetadataLocation {
			t.Errorf("it left with %s, and the last commit was %s", left.MetadataLocation, is)
		}
		// A process that was killed here repeats the attempt. The row is gone for others.
		if _, err := c.Detach(t.Context(), attempt); !errors.Is(err, transfer.ErrGone) {
			t.Errorf("a second one let it go: %v", err)
		}
		attempt.Repeated = true
		if again, err := c.Detach(t.Context(), attempt); err != nil || again.MetadataLocation != left.MetadataLocation {
			t.Errorf("repeated, it left with %s, %v", again.MetadataLocation, err)
		}
	})
}

// An attempt to detach a table is repeated, and the row is missing. If the table has another name
// now, it did not leave with the file of the attempt.
func TestDetachOfARenamedTable(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, d database) {
		d.do(t, properties)
		d.do(t, fmt.Sprintf(tablesFormat, first))
		d.do(t, "INSERT INTO iceberg_tables VALUES ('mine', 'a', 'renamed', 's3://lake/t/metadata/3', 's3://lake/t/metadata/2'), "+
			"('mine', 'a', 'beside', 's3://lake/t2/metadata/1', NULL)")
		c, err := sqlcatalog.Open(t.Context(), d.dsn, "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		o := transfer.Object{Namespace: []string{"a"}, Name: "t", MetadataLocation: "s3://lake/t/metadata/1"}
		attempt := transfer.Attempt{Object: o, Repeated: true}
		if _, err := c.Detach(t.Context(), attempt); !errors.Is(err, transfer.ErrGone) {
			t.Errorf("a renamed table left with the file of the attempt: %v", err)
		}
		d.do(t, "DELETE FROM iceberg_tables WHERE table_name = 'renamed'")
		if left, err := c.Detach(t.Context(), attempt); err != nil || left.MetadataLocation != o.MetadataLocation {
			t.Errorf("repeated, it left with %s, %v", left.MetadataLocation, err)
		}
	})
}
