package demo

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/storage"
)

// Namespace is the namespace of the sample tables, and Rows is the number of rows of its largest
// table.
const (
	Namespace = "harbour"
	Rows      = 50_000
)

const (
	filledProperty = "demo.filled" // property of the namespace; set when all samples exist
	stepKey        = "demo.step"   // key in the summary of a snapshot: the step that made it
)

//go:embed data
var data embed.FS

// Config has the parts of a server that Fill needs.
type Config struct {
	Catalog   catalog.Verbs // on behalf of the caller that makes the sample tables
	Warehouse string
	Storage   storage.Store // storage of the warehouse
	Now       func() time.Time
}

// Fill makes the sample tables and views. It does nothing if an earlier call has completed, even if
// they were dropped since. Errors come from the verbs of package catalog, and from the storage.
func Fill(ctx context.Context, c Config) error {
	f := filler{Config: c, files: make(map[string]file)}
	raw, err := data.ReadFile("data/files.json")
	if err != nil {
		return fmt.Errorf("read the list of files: %w", err)
	}
	var files []file
	if err := json.Unmarshal(raw, &files); err != nil {
		return fmt.Errorf("read the list of files: %w", err)
	}
	for _, file := range files {
		f.files[file.Name] = file
	}
	properties, err := c.Catalog.LoadNamespace(ctx, c.Warehouse, moorage.Namespace{Namespace})
	switch {
	case err == nil && properties[filledProperty] != "":
		return nil
	case moorage.KindOf(err) == moorage.KindNoSuchNamespace:
		_, err = c.Catalog.CreateNamespace(ctx, c.Warehouse, moorage.Namespace{Namespace},
			map[string]string{"comment": "sample tables of the demo"})
	}
	if err != nil {
		return fmt.Errorf("make the namespace %s: %w", Namespace, err)
	}
	for _, make := range []func(context.Context) error{f.ships, f.voyages, f.ports, f.views} {
		if err := make(ctx); err != nil {
			return err
		}
	}
	_, err = c.Catalog.UpdateNamespaceProperties(ctx, c.Warehouse, moorage.Namespace{Namespace},
		catalog.PropertiesChange{Updates: map[string]string{filledProperty: c.Now().UTC().Format(time.RFC3339)}})
	return err
}

// filler carries out the steps.
type filler struct {
	Config
	files map[string]file // by name
}

// file is an entry of files.json.
type file struct {
	Name    string            `json:"name"`
	Rows    int64             `json:"rows"`
	Bytes   int64             `json:"bytes"`
	Columns map[string]column `json:"columns"` // by field id
}

type column struct {
	Type   string `json:"type"` // as Arrow names it
	Bytes  int64  `json:"bytes"`
	Values int64  `json:"values"`
	Nulls  int64  `json:"nulls"`
	Lower  any    `json:"lower"`
	Upper  any    `json:"upper"`
}

func (f *filler) ships(ctx context.Context) error {
	t, err := f.table(ctx, "ships", `{"type":"struct","fields":[
		{"id":1,"name":"ship_id","required":true,"type":"int"},
		{"id":2,"name":"name","required":true,"type":"string"},
		{"id":3,"name":"flag","required":false,"type":"string","doc":"ISO 3166 code of the country"},
		{"id":4,"name":"built","required":false,"type":"int","doc":"year"}],"identifier-field-ids":[1]}`, "")
	if err != nil {
		return err
	}
	if err := t.append(ctx, "ships 1", "main", "ships-1.parquet"); err != nil {
		return err
	}
	if err := t.commit(ctx, `[{"action":"set-snapshot-ref","ref-name":"christening","type":"tag","snapshot-id":`+
		strconv.FormatInt(snapshotID("ships 1"), 10)+`}]`); err != nil {
		return err
	}
	if err := t.append(ctx, "ships 2", "main", "ships-2.parquet"); err != nil {
		return err
	}
	if err := t.commit(ctx, `[{"action":"add-schema","schema":{"type":"struct","fields":[
		{"id":1,"name":"ship_id","required":true,"type":"int"},
		{"id":2,"name":"name","required":true,"type":"string"},
		{"id":3,"name":"flag","required":false,"type":"string","doc":"ISO 3166 code of the country"},
		{"id":4,"name":"built","required":false,"type":"int","doc":"year"},
		{"id":5,"name":"capacity","required":false,"type":"int","doc":"tons"}],"identifier-field-ids":[1]}},
		{"action":"set-current-schema","schema-id":-1}]`); err != nil {
		return err
	}
	return t.append(ctx, "ships 3", "main", "ships-3.parquet")
}

func (f *filler) voyages(ctx context.Context) error {
	t, err := f.table(ctx, "voyages", `{"type":"struct","fields":[
		{"id":1,"name":"voyage_id","required":true,"type":"long"},
		{"id":2,"name":"ship_id","required":true,"type":"int"},
		{"id":3,"name":"origin","required":true,"type":"string"},
		{"id":4,"name":"destination","required":true,"type":"string"},
		{"id":5,"name":"departed","required":true,"type":"timestamptz"},
		{"id":6,"name":"arrived","required":false,"type":"timestamptz"},
		{"id":7,"name":"cargo","required":false,"type":"string"},
		{"id":8,"name":"tons","required":false,"type":"int"}],"identifier-field-ids":[1]}`,
		`{"fields":[{"source-id":5,"transform":"month","name":"departed_month"}]}`)
	if err != nil {
		return err
	}
	for quarter := range 4 {
		var names []string
		for month := range 3 {
			names = append(names, fmt.Sprintf("voyages-2025-%02d.parquet", 3*quarter+month+1))
		}
		step := fmt.Sprintf("voyages %d", quarter+1)
		if err := t.append(ctx, step, "main", names...); err != nil {
			return err
		}
	}
	return t.commit(ctx, `[{"action":"set-snapshot-ref","ref-name":"audit","type":"branch","snapshot-id":`+
		strconv.FormatInt(snapshotID("voyages 2"), 10)+`}]`)
}

func (f *filler) ports(ctx context.Context) error {
	t, err := f.table(ctx, "ports", `{"type":"struct","fields":[
		{"id":1,"name":"name","required":true,"type":"string"},
		{"id":2,"name":"country","required":false,"type":"string","doc":"ISO 3166 code"},
		{"id":3,"name":"latitude","required":false,"type":"double","doc":"degrees north"},
		{"id":4,"name":"longitude","required":false,"type":"double","doc":"degrees east"},
		{"id":5,"name":"berths","required":false,"type":"int"}],"identifier-field-ids":[1]}`, "")
	if err != nil {
		return err
	}
	if err := t.append(ctx, "ports 1", "main", "ports.parquet"); err != nil {
		return err
	}
	return t.deleteRows(ctx, "ports 2", "ports.parquet", 13, 14, 15)
}

// trinoPrefix precedes the names of tables in the SQL of views for Trino, which ignores the default
// namespace of a view. It names the catalog as moorage connect does.
const trinoPrefix = "moorage." + Namespace + "."

func (f *filler) views(ctx context.Context) error {
	for _, view := range []struct{ name, schema, sql string }{
		{"arrivals", `{"type":"struct","schema-id":0,"fields":[
			{"id":1,"name":"arrived","required":false,"type":"timestamptz"},
			{"id":2,"name":"ship","required":false,"type":"string"},
			{"id":3,"name":"destination","required":false,"type":"string"},
			{"id":4,"name":"tons","required":false,"type":"int"}]}`,
			`SELECT v.arrived, s.name AS ship, v.destination, v.tons FROM %[1]svoyages v ` +
				`JOIN %[1]sships s ON s.ship_id = v.ship_id WHERE v.arrived IS NOT NULL`},
		{"busiest", `{"type":"struct","schema-id":0,"fields":[
			{"id":1,"name":"port","required":false,"type":"string"},
			{"id":2,"name":"departures","required":false,"type":"long"}]}`,
			`SELECT origin AS port, count(*) AS departures FROM %[1]svoyages GROUP BY origin`},
	} {
		representations := []map[string]string{
			{"type": "sql", "sql": fmt.Sprintf(view.sql, ""), "dialect": "spark"},
			{"type": "sql", "sql": fmt.Sprintf(view.sql, trinoPrefix), "dialect": "trino"},
		}
		version, err := json.Marshal(map[string]any{
			"version-id": 1, "schema-id": 0, "timestamp-ms": f.Now().UnixMilli(), "summary": map[string]string{},
			"default-namespace": []string{Namespace}, "representations": representations,
		})
		if err != nil {
			return fmt.Errorf("describe %s: %w", view.name, err)
		}
		_, err = f.Catalog.CreateView(ctx, f.ident(view.name),
			catalog.CreateViewRequest{Schema: []byte(view.schema), Version: version})
		if err != nil && moorage.KindOf(err) != moorage.KindAlreadyExists {
			return fmt.Errorf("make the view %s: %w", view.name, err)
		}
	}
	return nil
}

func (f *filler) ident(name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: f.Warehouse, Namespace: moorage.Namespace{Namespace}, Name: name}
}

// table creates a table, unless it exists. The spec may be empty.
func (f *filler) table(ctx context.Context, name, schema, spec string) (*table, error) {
	request := catalog.CreateTableRequest{Schema: []byte(schema)}
	if spec != "" {
		request.PartitionSpec = []byte(spec)
	}
	made, err := f.Catalog.CreateTable(ctx, f.ident(name), request)
	if moorage.KindOf(err) == moorage.KindAlreadyExists {
		made, err = f.Catalog.LoadTable(ctx, f.ident(name))
	}
	if err != nil {
		return nil, fmt.Errorf("make the table %s: %w", name, err)
	}
	return &table{f, f.ident(name), made.Document}, nil
}

// table is one of the sample tables.
type table struct {
	*filler
	ident    moorage.Identifier
	document *metadata.Document // its present version
}

// commit applies updates, which must have no further effect if they have already been applied.
func (t *table) commit(ctx context.Context, updates string) error {
	checked, err := jsontext.Check([]byte(updates))
	if err != nil {
		return fmt.Errorf("read the updates of %s: %w", t.ident.Name, err)
	}
	decoded, err := metadata.DecodeUpdates(checked)
	if err != nil {
		return fmt.Errorf("read the updates of %s: %w", t.ident.Name, err)
	}
	committed, err := t.Catalog.Commit(ctx, t.ident, catalog.CommitRequest{Updates: decoded})
	if err != nil {
		return fmt.Errorf("change %s: %w", t.ident.Name, err)
	}
	t.document = committed.Document
	return nil
}

// append adds embedded data files to a branch, as one snapshot.
func (t *table) append(ctx context.Context, step, branch string, names ...string) error {
	if t.document.HasSnapshot(snapshotID(step)) {
		return nil
	}
	var added []manifests.AuthoredFile
	var rows, size int64
	for _, name := range names {
		file := t.files[name]
		body, err := data.ReadFile("data/" + name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		path := storage.Join(t.document.Location(), "data", name)
		if err := t.create(ctx, path, body); err != nil {
			return err
		}
		authored := manifests.AuthoredFile{Path: path, Rows: file.Rows, Bytes: file.Bytes, Partition: monthOf(name)}
		for id, c := range file.Columns {
			number, err := strconv.Atoi(id)
			if err != nil {
				return fmt.Errorf("read the columns of %s: %w", name, err)
			}
			authored.Columns = append(authored.Columns, manifests.AuthoredColumn{
				ID: number, Bytes: c.Bytes, Values: c.Values, Nulls: c.Nulls,
				Lower: c.bound(c.Lower), Upper: c.bound(c.Upper),
			})
		}
		added = append(added, authored)
		rows, size = rows+file.Rows, size+file.Bytes
	}
	return t.snapshot(ctx, step, branch, added, map[string]int64{
		"added-data-files": int64(len(added)), "added-records": rows, "added-files-size": size,
	})
}

// deleteRows deletes rows of a data file with a file of position deletes.
func (t *table) deleteRows(ctx context.Context, step, name string, positions ...int64) error {
	if t.document.HasSnapshot(snapshotID(step)) {
		return nil
	}
	body := positionDeletes(storage.Join(t.document.Location(), "data", name), positions)
	path := storage.Join(t.document.Location(), "data", "deletes-"+name)
	if err := t.create(ctx, path, body); err != nil {
		return err
	}
	rows, size := int64(len(positions)), int64(len(body))
	deletes := []manifests.AuthoredFile{{Path: path, Deletes: true, Rows: rows, Bytes: size}}
	return t.snapshot(ctx, step, "main", deletes, map[string]int64{
		"added-delete-files": 1, "added-position-delete-files": 1, "added-position-deletes": rows,
		"added-files-size": size,
	})
}

// create writes a file, unless an interrupted start has already written it.
func (t *table) create(ctx context.Context, path string, body []byte) error {
	if err := t.Storage.Create(ctx, path, body); err != nil && !errors.Is(err, storage.ErrExists) {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
