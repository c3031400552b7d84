// Package sqlcatalog reads the tables with which a client keeps a catalog in a database: the
// JdbcCatalog of Java, in its first form and in the form with views, and the SqlCatalog of
// PyIceberg. The database is PostgreSQL or a file of SQLite.
//
// It promises that a table which is detached has no later commit: TestDetachIsExact. It changes the
// database for nothing else.
package sqlcatalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver sqlite

	"moorage/transfer"
)

// Catalog is a catalog in a database. It is a transfer.Source and a transfer.Detacher. It is safe
// for concurrent use.
type Catalog struct {
	db       *sql.DB
	name     string // of the database, without a password
	catalog  string // the value of catalog_name
	views    bool   // rows have a type: the second form of JdbcCatalog
	numbered bool   // parameters are $1 and not ?
}

// typeView is the type of a row that is a view. Other rows are tables; in a database that was
// migrated to the second form some have no type.
const typeView = "VIEW"

// Open opens the catalog called catalog in the database at dsn: postgres://… or sqlite:FILE. If
// catalog is empty, the database must have one catalog.
//
// Errors: the database cannot be read; it has no such catalog.
func Open(ctx context.Context, dsn, catalog string) (*Catalog, error) {
	c := &Catalog{catalog: catalog}
	var err error
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch strings.TrimPrefix(scheme, "jdbc+") {
	case "postgres", "postgresql", "postgresql+psycopg2", "postgresql+psycopg":
		c.numbered = true
		dsn = "postgres:" + rest
		c.name = withoutPassword(dsn)
		c.db, err = sql.Open(driverPostgres(), dsn)
	case "sqlite":
		// SQLAlchemy writes sqlite:////a/b for the file /a/b, and sqlite:///b for the file b.
		file := rest
		if below, ok := strings.CutPrefix(rest, "///"); ok {
			file = below
		}
		c.name = "sqlite:" + file
		at := (&url.URL{Path: file}).EscapedPath() + "?mode=rw&_pragma=busy_timeout(10000)"
		c.db, err = sql.Open("sqlite", "file:"+at)
	default:
		return nil, fmt.Errorf("%q is no database: write postgres://HOST/NAME or sqlite:FILE", scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", c.name, err)
	}
	if err := c.look(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", c.name, err), c.db.Close())
	}
	c.name += " " + c.catalog
	return c, nil
}

// driverPostgres returns the name of the driver that package stdlib registers.
func driverPostgres() string {
	_ = stdlib.GetDefaultDriver()
	return "pgx"
}

func withoutPassword(dsn string) string {
	at, err := url.Parse(dsn)
	if err != nil {
		return "postgres"
	}
	at.RawQuery = ""
	if at.User != nil {
		at.User = url.User(at.User.Username())
	}
	return at.String()
}

// look finds the form of the tables, and the catalog.
func (c *Catalog) look(ctx context.Context) error {
	rows, err := c.db.QueryContext(ctx, "SELECT * FROM iceberg_tables WHERE 1 = 0")
	if err != nil {
		return err
	}
	columns, err := rows.Columns()
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return err
	}
	c.views = slices.Contains(columns, "iceberg_type")
	var found []string
	err = c.each(ctx, "SELECT DISTINCT catalog_name FROM iceberg_tables", nil, func(row func(...any) error) error {
		var name string
		err := row(&name)
		found = append(found, name)
		return err
	})
	switch {
	case err != nil:
		return err
	case c.catalog != "":
		return nil
	case len(found) != 1:
		slices.Sort(found)
		return fmt.Errorf("it has %d catalogs: name one with --catalog (%s)", len(found), strings.Join(found, ", "))
	}
	c.catalog = found[0]
	return nil
}

// each calls visit with each row of a query.
func (c *Catalog) each(ctx context.Context, query string, values []any,
	visit func(row func(...any) error) error) error {
	rows, err := c.db.QueryContext(ctx, c.numberedIn(query), values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// numberedIn returns query with the database's form of parameters.
func (c *Catalog) numberedIn(query string) string {
	if !c.numbered {
		return query
	}
	var text strings.Builder
	number := 0
	for _, r := range query {
		if r == '?' {
			number++
			fmt.Fprintf(&text, "$%d", number)
			continue
		}
		text.WriteRune(r)
	}
	return text.String()
}

// Close closes the database.
func (c *Catalog) Close() error { return c.db.Close() }

// Name implements transfer.Source.
func (c *Catalog) Name() string { return c.name }

// propertyExists is the property with which a namespace without properties is kept.
const propertyExists = "exists"

// Namespaces implements transfer.Source.
func (c *Catalog) Namespaces(ctx context.Context) ([]transfer.Namespace, error) {
	properties := make(map[string]map[string]string)
	const query = "SELECT namespace, property_key, property_value FROM iceberg_namespace_properties " +
		"WHERE catalog_name = ?"
	err := c.each(ctx, query, []any{c.catalog}, func(row func(...any) error) error {
		var namespace, key string
		var value sql.NullString
		err := row(&namespace, &key, &value)
		if properties[namespace] == nil {
			properties[namespace] = make(map[string]string)
		}
		if key != propertyExists {
			properties[namespace][key] = value.String
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []transfer.Namespace
	for namespace, found := range properties {
		all = append(all, transfer.Namespace{Levels: strings.Split(namespace, "."), Properties: found})
	}
	slices.SortFunc(all, func(a, b transfer.Namespace) int { return slices.Compare(a.Levels, b.Levels) })
	return all, nil
}

// List implements transfer.Source.
func (c *Catalog) List(ctx context.Context, visit func(transfer.Object) error) error {
	kind := "NULL"
	if c.views {
		kind = "iceberg_type"
	}
	query := "SELECT table_namespace, table_name, metadata_location, " + kind +
		" FROM iceberg_tables WHERE catalog_name = ?"
	return c.each(ctx, query, []any{c.catalog}, func(row func(...any) error) error {
		var namespace, name string
		var location, of sql.NullString
		if err := row(&namespace, &name, &location, &of); err != nil {
			return err
		}
		return visit(transfer.Object{
			Namespace: strings.Split(namespace, "."), Name: name, View: of.String == typeView,
			MetadataLocation: location.String,
		})
	})
}

// where selects the row of an object.
func where(o transfer.Object, catalog string) (clause string, values []any) {
	return " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
		[]any{catalog, strings.Join(o.Namespace, "."), o.Name}
}

// Load implements transfer.Source.
func (c *Catalog) Load(ctx context.Context, o transfer.Object) (transfer.Object, error) {
	clause, values := where(o, c.catalog)
	found := false
	query := "SELECT metadata_location FROM iceberg_tables" + clause
	err := c.each(ctx, query, values, func(row func(...any) error) error {
		var location sql.NullString
		err := row(&location)
		o.MetadataLocation, found = location.String, true
		return err
	})
	if err == nil && !found {
		err = transfer.ErrGone
	}
	return o, err
}

// CanDetach implements transfer.Detacher.
func (c *Catalog) CanDetach(transfer.Object) bool { return true }

// Detach implements transfer.Detacher. A commit of the client replaces the row only if it still has
// the metadata file that the client read, so there is none after the row is gone. If the row of a
// repeated attempt is gone, the first one deleted it with the file of the attempt, unless the table
// was renamed. The database does not show whether a client dropped the table instead.
func (c *Catalog) Detach(ctx context.Context, a transfer.Attempt) (transfer.Object, error) {
	clause, values := where(a.Object, c.catalog)
	query := c.numberedIn("DELETE FROM iceberg_tables" + clause + " AND metadata_location = ?")
	done, err := c.db.ExecContext(ctx, query, append(values, a.Object.MetadataLocation)...)
	if err != nil {
		return a.Object, err
	}
	if count, err := done.RowsAffected(); err != nil || count == 1 {
		return a.Object, err
	}
	now, err := c.Load(ctx, a.Object)
	switch {
	case errors.Is(err, transfer.ErrGone) && a.Repeated:
		return a.Object, c.refuseRenamed(ctx, a.Object)
	case err == nil:
		err = transfer.ErrMoved
	}
	return now, err
}

// refuseRenamed returns transfer.ErrGone if o, which has no row, has another name now. A renamed
// table keeps the folder of its metadata files.
func (c *Catalog) refuseRenamed(ctx context.Context, o transfer.Object) error {
	return c.List(ctx, func(other transfer.Object) error {
		if path.Dir(other.MetadataLocation) == path.Dir(o.MetadataLocation) {
			return fmt.Errorf("%w: %s has its folder of metadata files", transfer.ErrGone, other)
		}
		return nil
	})
}
