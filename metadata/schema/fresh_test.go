package schema_test

import (
	"strings"
	"testing"

	"moorage"
	"moorage/metadata/schema"
)

func TestFreshTableNumbersLevelByLevel(t *testing.T) {
	t.Parallel()
	schemaRaw, specRaw, orderRaw, lastColumn, lastPartition, err := schema.Fresh(mustSchema(t, nested), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := mustSchema(t, string(schemaRaw))
	names := got.ColumnNames()
	for name, id := range map[string]int{
		"id": 1, "a": 2, "l": 3, "m": 4, "ts": 5, "a.x": 6, "a.y": 7, "l.element": 8, "l.element.z": 9, "m.key": 10, "m.value": 11,
	} {
		if found, _ := names.Find(name); found != id {
			t.Errorf("field %s = %d, want id %d", name, found, id)
		}
	}
	if lastColumn != 11 || got.HighestID != 11 || got.ID != 0 || !strings.Contains(string(schemaRaw), `"identifier-field-ids":[1]`) {
		t.Errorf("last column %d, schema id %d, of %s", lastColumn, got.ID, schemaRaw)
	}
	if string(specRaw) != `{"spec-id":0,"fields":[]}` || lastPartition != 999 || string(orderRaw) != `{"order-id":0,"fields":[]}` {
		t.Errorf("spec %s, last partition %d, order %s", specRaw, lastPartition, orderRaw)
	}
}

func TestFreshTableBindsAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	const (
		schemaSent = `{ "x":[1, 2], "type":"struct", "identifier-field-ids":[30, 10], "fields":[
 {"id":30,"name":"b","required":true,"type":"long","doc":"é","initial-default":9223372036854775807},
 {"id":2147483646,"name":"a","required":false,"type":{"type":"struct","fields":[{"id":10,"name":"c","required":true,"type":"double","write-default":0.0}],"y":{}}},
 {"id":0,"name":"d","required":true,"type":"Long"}]}`
		schemaWant = `{"schema-id":0, "x":[1, 2], "type":"struct", "identifier-field-ids":[1,4], "fields":[
 {"id":1,"name":"b","required":true,"type":"long","doc":"é","initial-default":9223372036854775807},
 {"id":2,"name":"a","required":false,"type":{"type":"struct","fields":[{"id":4,"name":"c","required":true,"type":"double","write-default":0.0}],"y":{}}},
 {"id":3,"name":"d","required":true,"type":"long"}]}`
		specSent  = `{"spec-id":7,"fields":[{"name":"p","transform":"bucket[4]","source-id":0,"field-id":1234},{"name":"q","transform":"Identity","source-id":10,"field-id":77,"z":1}]}`
		specWant  = `{"spec-id":0,"fields":[{"name":"p","transform":"bucket[4]","source-id":3,"field-id":1000},{"name":"q","transform":"identity","source-id":4,"field-id":1001,"z":1}]}`
		orderSent = `{"order-id":5,"fields":[{"transform":"twin","source-ids":[10,30],"direction":"DESC","null-order":"nulls-last"}]}`
		orderWant = `{"order-id":1,"fields":[{"transform":"twin","source-ids":[4,1],"direction":"desc","null-order":"nulls-last"}]}`
	)
	schemaRaw, specRaw, orderRaw, lastColumn, lastPartition, err :=
		schema.Fresh(mustSchema(t, schemaSent), mustSpec(t, specSent), mustSortOrder(t, orderSent))
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{string(schemaRaw), schemaWant}, {string(specRaw), specWant}, {string(orderRaw), orderWant}} {
		if pair[0] != pair[1] {
			t.Errorf("\n got %s\nwant %s", pair[0], pair[1])
		}
	}
	if lastColumn != 4 || lastPartition != 1001 {
		t.Errorf("last column %d, last partition %d", lastColumn, lastPartition)
	}
}

func TestFreshTableAddsWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := mustSpec(t, `{"fields":[{"name":"p","transform":"identity","source-id":1}]}`)
	o := mustSortOrder(t, `{"fields":[]}`)
	_, specRaw, orderRaw, _, last, err := schema.Fresh(mustSchema(t, column(`"int"`)), p, o)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"spec-id":0,"fields":[{"field-id":1000,"name":"p","transform":"identity","source-id":1}]}`
	if string(specRaw) != want || last != 1000 || string(orderRaw) != `{"order-id":0,"fields":[]}` {
		t.Errorf("spec %s, last %d, order %s", specRaw, last, orderRaw)
	}
	p.AssignFieldIDs(1500)
	if _, specRaw, _, _, last, _ = schema.Fresh(mustSchema(t, column(`"int"`)), p, nil); string(specRaw) != want || last != 1000 {
		t.Errorf("after assignFieldIDs: spec %s, last %d", specRaw, last)
	}
}

func TestFreshTableRefuses(t *testing.T) {
	t.Parallel()
	s := mustSchema(t, column(`"int"`))
	identified := mustSchema(t, strings.Replace(column(`"int"`), `{`, `{"identifier-field-ids":[9],`, 1))
	tests := []struct {
		name string
		s    *schema.Schema
		p    *schema.Spec
		o    *schema.SortOrder
		kind moorage.Kind
		text string
	}{
		{"spec source", s, mustSpec(t, partitioned("p", "identity", 9)), nil, moorage.KindValidation, "Cannot find source column for partition field: 1000: p: identity(9)"},
		{"void source", s, mustSpec(t, partitioned("p", "void", 9)), nil, moorage.KindValidation, "Cannot find source column for partition field: 1000: p: void(9)"},
		{"order source", s, nil, mustSortOrder(t, sorted("identity", 9)), moorage.KindValidation, "Cannot find source column for sort field: identity(9) ASC NULLS FIRST"},
		{"identifier", identified, nil, nil, moorage.KindIllegalArgument, "Cannot add fieldId 9 as an identifier field: field does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, _, _, _, err := schema.Fresh(tt.s, tt.p, tt.o)
			if moorage.KindOf(err) != tt.kind || moorage.MessageOf(err) != tt.text {
				t.Errorf("freshTable = %v %v, want %v %q", moorage.KindOf(err), err, tt.kind, tt.text)
			}
		})
	}
}
