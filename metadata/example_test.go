package metadata_test

import (
	"fmt"
	"time"

	"moorage/internal/jsontext"
	"moorage/metadata"
)

// A commit decodes its updates, and derives a new document from the old one. The parts that it does
// not touch stay unchanged, even an unknown member.
func ExampleDocument() {
	table, err := metadata.Parse([]byte(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1",
 "location":"s3://lake/t","last-sequence-number":0,"last-updated-ms":1000,"last-column-id":1,"current-schema-id":0,
 "schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":true,"type":"long"}]}],
 "default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,
 "default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}], "x-owner": 0.0,"properties":{}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := jsontext.Check([]byte(`[{"action":"set-properties","updates":{"team":"b"}}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	updates, err := metadata.DecodeUpdates(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := table.Apply(updates, metadata.Env{Now: time.UnixMilli(2000)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(next.Properties(), next.LastUpdatedMS())
	fmt.Printf("%s\n", next.Raw()[len(next.Raw())-41:])
	// Output:
	// map[team:b] 2000
	// "x-owner": 0.0,"properties":{"team":"b"}}
}

// A new view has one version. A commit adds another, and makes it the current one.
func ExampleViewDocument() {
	const version = `{"version-id":%d,"schema-id":0,"timestamp-ms":%[1]d000,"summary":{},"default-namespace":["ns"],
		"representations":[{"type":"sql","dialect":"spark","sql":"SELECT %[1]d"}]}`
	env := metadata.Env{Now: time.UnixMilli(5000), NewUUID: func() string { return "fa6506c3-7681-40c8-86dc-e36561f83385" }}
	view, err := metadata.NewView(metadata.CreateView{
		Location: "s3://lake/v", Schema: []byte(`{"type":"struct","fields":[]}`), Version: fmt.Appendf(nil, version, 1),
	}, env)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := jsontext.Check(fmt.Appendf(nil, `[{"action":"add-view-version","view-version":`+version+`},
		{"action":"set-current-view-version","view-version-id":-1}]`, 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	updates, err := metadata.DecodeViewUpdates(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := view.Apply(updates, env)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(view.CurrentVersionID(), next.CurrentVersionID(), next.Location())
	// Output: 1 2 s3://lake/v
}
